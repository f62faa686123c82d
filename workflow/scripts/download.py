from cohort.cell import run_options
from cohort.data.download import download
from cohort.log import logged

with logged(snakemake.log[0]):
    download(snakemake.params.raw, snakemake.output[0], **run_options("download"))
