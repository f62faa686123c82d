from cohort.core.log import logged
from cohort.report.index import write_index

with logged(snakemake.log[0]):
    write_index(snakemake.output[0])
