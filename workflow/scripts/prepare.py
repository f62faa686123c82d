from cohort.data.prepare import prepare
from cohort.log import logged

with logged(snakemake.log[0]):
    prepare(snakemake.params.plan, snakemake.output[0])
