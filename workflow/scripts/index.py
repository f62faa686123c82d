from cohort.core.files import clamp_times
from cohort.core.log import logged
from cohort.results.report.index import write_index

with logged(snakemake.log[0]):
    clamp_times(snakemake.input)
    write_index(snakemake.output[0])
