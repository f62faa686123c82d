from cohort.cell.planned import run_options
from cohort.core.log import logged
from cohort.data.download import download

with logged(snakemake.log[0]):
    download(snakemake.params.raw, snakemake.output[0], **run_options("download"))
