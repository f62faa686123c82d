import json

from cohort.core.files import clamp_times
from cohort.core.process import log_output
from cohort.results.tables.tabulate import tabulate

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    tabulate(
        json.loads(snakemake.params.spec), next(iter(snakemake.input), ""), list(snakemake.output)
    )
