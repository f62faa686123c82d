rule collect:
    input:
        stages.collect_inputs,
    output:
        multiext("results/{scale}/metrics/{study}/{experiment}", ".parquet", ".json"),
    log:
        "results/logs/{scale}/collect/{study}/{experiment}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=4000,
    params:
        plan=stages.collect_plan,
        code=stages.code(),
    script:
        "../workflow/scripts/collect.py"
