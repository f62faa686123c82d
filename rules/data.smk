rule download:
    output:
        "resources/raw/{dataset}/{file}",
    log:
        "results/logs/download/{dataset}/{file}.log",
    conda:
        "../environment.yml"
    params:
        raw=stages.raw,
    resources:
        mem_mb=500,
    localrule: True
    script:
        "../workflow/scripts/download.py"


rule prepare:
    input:
        ancient(stages.sources),
    output:
        "resources/data/{dataset}-{digest}.h5",
    log:
        "results/logs/prepare/{dataset}-{digest}.log",
    conda:
        "../environment.yml"
    params:
        plan="results/plan/{digest}.json",
    resources:
        mem_mb=2000,
        runtime=60,
    script:
        "../workflow/scripts/prepare.py"
