import json

from cohort.core.files import clamp_times
from cohort.core.process import log_output
from cohort.results.figures.draw import draw

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    draw(json.loads(snakemake.params.spec), snakemake.input[0], list(snakemake.output))
