from cohort.core.process import log_output
from cohort.data.download import download
from cohort.settings import run_options

with log_output(snakemake.log[0]):
    download(snakemake.params.raw, snakemake.output[0], **run_options("download"))
