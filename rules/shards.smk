rule deal:
    input:
        stages.sources,
    output:
        "results/shards/{shards}-{digest}.h5",
    log:
        "results/logs/deal/{shards}-{digest}.log",
    conda:
        "../environment.yml"
    resources:
        mem_mb=2000,
        runtime=stages.at_most(30),
    params:
        plan="results/plan/{digest}.json",
    script:
        "../workflow/scripts/deal.py"
