from cohort.cell import plan_file, run_options
from cohort.log import logged
from cohort.training.memory import lasting

with logged(snakemake.log[0]):
    with lasting():
        from cohort.training.job import train

    train(plan_file(snakemake.wildcards.digest), snakemake.output[0], **run_options("train"))
