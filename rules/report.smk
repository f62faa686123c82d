rule report:
    input:
        stages.page_inputs,
    output:
        "results/{scale}/report/index.html",
    log:
        "results/logs/{scale}/report.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=1000,
    params:
        spec=stages.page_spec,
        code=stages.code("report", "claims", "tables", "metrics", "records"),
    script:
        "../workflow/scripts/report.py"
