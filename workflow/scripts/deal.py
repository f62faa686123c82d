from cohort.log import logged
from cohort.shards import deal

with logged(snakemake.log[0]):
    deal(snakemake.params.plan, snakemake.output[0])
