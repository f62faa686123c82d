from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.results.collect import collect

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    collect(snakemake.params.plan, snakemake.output[0])
