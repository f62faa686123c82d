import json

from cohort.core.log import logged
from cohort.figures.draw import draw

with logged(snakemake.log[0]):
    draw(json.loads(snakemake.params.spec), snakemake.input[0], list(snakemake.output))
