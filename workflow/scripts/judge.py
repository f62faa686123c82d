import json

from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.results.claims.judge import write_judged

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    write_judged(json.loads(snakemake.params.spec), list(snakemake.output))
