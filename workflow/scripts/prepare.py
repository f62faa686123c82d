from cohort.core.log import logged
from cohort.data.prepare import prepare

with logged(snakemake.log[0]):
    prepare(snakemake.params.plan, snakemake.output[0])
