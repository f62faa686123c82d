"""From the studies of config/config.yaml to their figures, tables and report."""

import sys
from snakemake.utils import min_version

min_version("9.20")


configfile: "config/config.yaml"


sys.path.insert(0, f"{workflow.current_basedir}/workflow")  # of a clone

try:
    from cohort.core.errors import UserError
except ModuleNotFoundError as error:
    sys.exit(f"error: {error}: it comes with pip install cohort-fl")

try:  # these import the user's own components
    from cohort.pipeline.driver import Driver
    from cohort.pipeline.stages import targets
    from cohort.plan import load

    plan = load(config, whole=True) if workflow.is_main_process else None
    driver = Driver(plan, workflow)
    stages = driver.stages
    driver.set_up()
except UserError as error:
    sys.exit(f"error: {error}")  # a WorkflowError would show lines of this file


container: config.get("container") or None


wildcard_constraints:
    digest="k[0-9a-f]{12}",
    scale="[a-z][a-z0-9_]*",
    study="[a-z][a-z0-9_]*",
    experiment="[a-z][a-z0-9_]*",
    name="[a-z][a-z0-9_]*",


for target, files in targets(plan, driver.check_executor):

    rule:
        name:
            target
        input:
            files,
        localrule: True


include: "rules/data.smk"
include: "rules/shards.smk"
include: "rules/train.smk"
include: "rules/metrics.smk"
include: "rules/figures.smk"
include: "rules/report.smk"


onstart:
    driver.on_start()


onsuccess:
    driver.on_success()


onerror:
    driver.on_error()
