import json

from cohort.core.log import logged
from cohort.report.page import write_page

with logged(snakemake.log[0]):
    write_page(json.loads(snakemake.params.spec), list(snakemake.output))
