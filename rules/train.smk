rule train:
    input:
        stages.train_inputs,
    output:
        "results/cells/{cell}-{digest}.h5",
    log:
        "results/logs/train/{cell}-{digest}.log",
    conda:
        "../environment.yml"
    resources:
        mem_mb=stages.megabytes,
        runtime=stages.minutes,
    script:
        "../workflow/scripts/train.py"
