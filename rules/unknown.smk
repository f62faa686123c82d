rule unknown:
    input:
        stages.unknown,
    output:
        "{target}",
    wildcard_constraints:
        target="[^/]+",
    localrule: True
