import json

from cohort.core.files import clamp_times
from cohort.core.log import log_output
from cohort.results.claims.judge import judge

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    judge(json.loads(snakemake.params.spec), list(snakemake.output))
