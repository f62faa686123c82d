from cohort.cell import run_options
from cohort.log import logged

with logged(snakemake.log[0]):
    from cohort.training.job import train

    train(snakemake.params.plan, snakemake.output[0], **run_options())
