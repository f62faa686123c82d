from cohort.data.download import download
from cohort.log import logged

with logged(snakemake.log[0]):
    download(**snakemake.params.raw, target=snakemake.output[0])
