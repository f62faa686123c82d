rule draw:
    input:
        stages.item_inputs,
    output:
        report(
            "results/{scale}/figures/{study}/{name}.png",
            caption="captions/item.rst",
            category="{study}",
            subcategory="figures",
            labels={"figure": "{name}"},
        ),
        multiext(
            "results/{scale}/figures/{study}/{name}",
            ".pdf",
            ".json",
            "-narrow.png",
        ),
    log:
        "results/logs/{scale}/figures/{study}/{name}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=2000,
    params:
        spec=stages.spec,
        caption=stages.caption,
        code=stages.code("figures"),
    script:
        "../workflow/scripts/draw.py"


rule tabulate:
    input:
        stages.item_inputs,
    output:
        report(
            "results/{scale}/tables/{study}/{name}.csv",
            caption="captions/item.rst",
            category="{study}",
            subcategory="tables",
            labels={"table": "{name}"},
        ),
        multiext("results/{scale}/tables/{study}/{name}", ".md", ".tex", ".json"),
    log:
        "results/logs/{scale}/tables/{study}/{name}.log",
    wildcard_constraints:
        name=r"(?!claims\.)[a-z][a-z0-9_]*",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=1000,
    params:
        spec=stages.spec,
        caption=stages.caption,
        code=stages.code("tables"),
    script:
        "../workflow/scripts/tabulate.py"


rule judge:
    input:
        stages.claim_inputs,
    output:
        report(
            "results/{scale}/tables/{study}/claims.csv",
            caption="captions/claims.rst",
            category="{study}",
            labels={"what": "verdicts on all claims"},
        ),
        multiext("results/{scale}/tables/{study}/claims", ".md", ".tex", ".json"),
    log:
        "results/logs/{scale}/tables/{study}/claims.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=1000,
    params:
        spec=stages.claims,
        code=stages.code("claims", "tables"),
    script:
        "../workflow/scripts/judge.py"
