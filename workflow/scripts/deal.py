from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.partition.deal import deal

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    deal(snakemake.params.plan, snakemake.output[0])
