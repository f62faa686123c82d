import json

from cohort.core.files import clamp_times
from cohort.core.process import log_output

with log_output(snakemake.log[0]):
    clamp_times(snakemake.input)
    # here, so that a broken module in my/ ends in the log
    from cohort.results.claims.judged import write_judged

    write_judged(json.loads(snakemake.params.spec), list(snakemake.output))
