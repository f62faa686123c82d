from cohort.core.files import clamp_times
from cohort.core.process import log_output
from cohort.data.prepare import prepare

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    prepare(snakemake.params.plan, snakemake.output[0])
