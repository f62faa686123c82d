from cohort.core.log import logged
from cohort.metrics.collect import collect

with logged(snakemake.log[0]):
    collect(snakemake.params.plan, snakemake.output[0])
