from cohort.cell.planned import run_options
from cohort.core.process import log_output
from cohort.data.download import download

with log_output(snakemake.log[0]):
    download(snakemake.params.raw, snakemake.output[0], **run_options("download"))
