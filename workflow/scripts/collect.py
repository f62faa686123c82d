from cohort.log import logged
from cohort.records.collect import collect

with logged(snakemake.log[0]):
    collect(snakemake.params.plan, snakemake.output[0])
