from cohort.core.files import clamp_times
from cohort.core.process import log_output
from cohort.partition.deal import deal

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    deal(snakemake.params.plan, snakemake.output[0])
