"""Snakemake's limit of jobs per timespan, under which each job that ends wakes the scheduler in every later timespan."""

from __future__ import annotations

import pytest

from tests.workflow.conftest import Project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "has_limit"), [((), False), (("--max-jobs-per-timespan", "5/1s"), True)]
)
def test_only_a_limit_that_the_user_sets_is_kept(
    arguments: tuple[str, ...], has_limit: bool, finished: Project
):
    shown = "print('limiter:', workflow.scheduler.job_rate_limiter)"
    finished.replace("Snakefile", "driver.on_success()", f"{shown}; driver.on_success()")
    (record := finished.records()[0]).unlink()
    output = finished.snakemake(str(record.relative_to(finished.root)), *arguments)
    assert "train" in output and "limiter: " in output
    assert ("limiter: None" not in output) is has_limit
