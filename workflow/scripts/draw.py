import json

from cohort.figures.draw import draw
from cohort.log import logged

with logged(snakemake.log[0]):
    draw(json.loads(snakemake.params.spec), snakemake.input[0], list(snakemake.output))
