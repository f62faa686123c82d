from cohort.core.log import logged
from cohort.partition.deal import deal

with logged(snakemake.log[0]):
    deal(snakemake.params.plan, snakemake.output[0])
