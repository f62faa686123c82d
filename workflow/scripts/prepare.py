from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.data.prepare import prepare

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    prepare(snakemake.params.plan, snakemake.output[0])
