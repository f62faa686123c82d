rule report:
    input:
        stages.page_inputs,
    output:
        report(
            "results/{scale}/report/{study}.html",
            caption="captions/page.rst",
            category="{study}",
            labels={"what": "the whole page"},
        ),
        "results/{scale}/report/{study}.json",
    log:
        "results/logs/{scale}/report/{study}.log",
    wildcard_constraints:
        study=r"(?!index\.)[a-z][a-z0-9_]*",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=1000,
    params:
        spec=stages.page_spec,
        code=stages.code("report", "claims", "tables"),
    script:
        "../workflow/scripts/report.py"


rule index:
    input:
        stages.cards,
    output:
        "results/{scale}/report/index.html",
    log:
        "results/logs/{scale}/report/index.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=500,
    params:
        code=stages.code("report"),
    script:
        "../workflow/scripts/index.py"


if not driver.in_module:  # it would claim the files of the workflow that uses this one

    rule unknown:
        input:
            stages.unknown,
        output:
            "{target}",
        wildcard_constraints:
            target="[^/]+",
        localrule: True
