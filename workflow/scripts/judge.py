import json

from cohort.claims.judge import judge
from cohort.core.log import logged

with logged(snakemake.log[0]):
    judge(json.loads(snakemake.params.spec), list(snakemake.output))
