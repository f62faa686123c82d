rule report:
    input:
        stages.page_inputs,
    output:
        "results/{scale}/report/index.html",
    log:
        "results/logs/{scale}/report.log",
    conda:
        "../environment.yml"
    params:
        spec=stages.page_spec,
        code=stages.code("report", "tables", "figures", "records"),
    resources:
        mem_mb=1000,
    localrule: True
    script:
        "../workflow/scripts/report.py"
