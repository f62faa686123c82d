import json

from cohort.core.files import clamp_times
from cohort.core.process import log_output

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    # here, so that a broken module in my/ ends in the log
    from cohort.results.tables.tabulate import tabulate

    tabulate(json.loads(snakemake.params.spec), snakemake.input[0], list(snakemake.output))
