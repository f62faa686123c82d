import json

from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.results.tables.tabulate import tabulate

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    tabulate(
        json.loads(snakemake.params.spec), next(iter(snakemake.input), ""), list(snakemake.output)
    )
