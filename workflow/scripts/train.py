import signal

from cohort.core.files import clamp_times
from cohort.core.paths import plan_file
from cohort.core.process import freeze_objects, leave, log_output
from cohort.settings import run_options

signal.signal(signal.SIGTERM, signal.default_int_handler)  # till training saves at signals
with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    with freeze_objects():  # no garbage collection during the import of torch
        from cohort.training.job.train import train

    train(plan_file(snakemake.wildcards.digest), snakemake.output[0], **run_options("train"))
leave()
