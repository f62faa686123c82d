from cohort.core.files import clamp_times
from cohort.core.process import log_output
from cohort.results.report.page import write_index

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    write_index(snakemake.output[0])
