rule collect:
    input:
        stages.collect_inputs,
    output:
        "results/{scale}/metrics/{study}/{experiment}.parquet",
    log:
        "results/logs/{scale}/collect/{study}/{experiment}.log",
    conda:
        "../environment.yml"
    params:
        plan=stages.collect_plan,
        code=stages.code("records"),
    resources:
        mem_mb=4000,
    localrule: True
    script:
        "../workflow/scripts/collect.py"
