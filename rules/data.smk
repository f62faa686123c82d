rule download:
    output:
        "resources/raw/{dataset}/{file}",
    log:
        "results/logs/download/{dataset}/{file}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=500,
    params:
        raw=stages.raw,
    script:
        "../workflow/scripts/download.py"


rule prepare:
    input:
        stages.sources,
    output:
        "resources/data/{dataset}-{digest}.h5",
    log:
        "results/logs/prepare/{dataset}-{digest}.log",
    conda:
        "../environment.yml"
    resources:
        mem_mb=2000,
        runtime=stages.at_most(60),
    params:
        plan="results/plan/{digest}.json",
    script:
        "../workflow/scripts/prepare.py"
