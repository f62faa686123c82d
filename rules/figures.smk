rule draw:
    input:
        stages.metrics,
    output:
        multiext("results/{scale}/figures/{study}/{name}", ".png", ".pdf", ".svg"),
    log:
        "results/logs/{scale}/figures/{study}/{name}.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=2000,
    params:
        spec=stages.spec,
        code=stages.code("figures", "metrics", "records"),
    script:
        "../workflow/scripts/draw.py"


rule tabulate:
    input:
        stages.metrics,
    output:
        multiext("results/{scale}/tables/{study}/{name}", ".csv", ".md", ".tex"),
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
        code=stages.code("tables", "metrics", "records"),
    script:
        "../workflow/scripts/tabulate.py"


rule judge:
    input:
        stages.claim_inputs,
    output:
        multiext("results/{scale}/tables/{study}/claims", ".csv", ".md", ".tex"),
    log:
        "results/logs/{scale}/tables/{study}/claims.log",
    localrule: True
    conda:
        "../environment.yml"
    resources:
        mem_mb=1000,
    params:
        spec=stages.claims,
        code=stages.code("claims", "tables", "metrics", "records"),
    script:
        "../workflow/scripts/judge.py"
