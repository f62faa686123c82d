"""What the driver changes in Snakemake before the first job."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from snakemake.cli import get_argument_parser
from snakemake.settings.types import MaxJobsPerTimespan

from cohort.pipeline.driver import Driver

DEFAULT = get_argument_parser().get_default("max_jobs_per_timespan")


@pytest.mark.parametrize(("limit", "kept"), [(DEFAULT, False), ("5/1s", True), ("100/1m", True)])
def test_only_a_limit_that_the_user_sets_is_kept(limit: str, kept: bool):
    """Each job that ends under a limit wakes the scheduler in every later timespan."""
    workflow = SimpleNamespace(
        resource_settings=SimpleNamespace(nodes=None),
        scheduling_settings=SimpleNamespace(
            max_jobs_per_timespan=MaxJobsPerTimespan.parse_choice(limit)
        ),
        scheduler=SimpleNamespace(job_rate_limiter="limiter"),
    )
    Driver(None, workflow).drop_default_limit()
    assert (workflow.scheduler.job_rate_limiter == "limiter") is kept
