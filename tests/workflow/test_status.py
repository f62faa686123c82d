"""What `cohort status` makes of cells that failed, however far they came."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.workflow.conftest import Project
from tests.workflow.test_command_line import cohort, counts

LAST = "slurmstepd: error: *** JOB 7 ON node3 CANCELLED DUE TO NODE FAILURE ***"


def a_cell(project: Project) -> tuple[Path, Path]:
    """A record of experiment two, and its log, both relative to the project."""
    record = next(path for path in project.records() if "/J3/" in str(path))
    record = record.relative_to(project.root)
    return record, Path("results/logs/train", *record.parts[2:]).with_suffix(".log")


def slurm_log(project: Project, record: Path, job: int, text: str, age: float) -> Path:
    """As the plugin for SLURM names it: the wildcards, with _ for /."""
    folder = "_".join((*record.parts[2:-1], record.stem.replace("-k", "_k")))
    file = Path(".snakemake/slurm_logs/rule_train", folder, f"{job}.log")
    (project.root / file).parent.mkdir(parents=True, exist_ok=True)
    (project.root / file).write_text(text)
    os.utime(project.root / file, (time.time() - age, time.time() - age))
    return file


@pytest.mark.slow
def test_a_job_whose_node_died_before_the_cell_began(finished: Project):
    record, log = a_cell(finished)
    (finished.root / record).unlink()
    (finished.root / log).unlink()
    assert counts(finished, "two") == {"done": 1, "missing": 1}
    slurm_log(finished, record, 6, "the first attempt\n", age=500)
    last = slurm_log(finished, record, 7, f"host: node3\n{LAST}\n\n", age=300)
    assert counts(finished, "two") == {"done": 1, "failed": 1}
    failed = f"\nfailed: {record}\n  {LAST}\n  more: less {last}\n"
    assert cohort(finished, "status").endswith(failed)
    for newer in ("", "--- 2026-11-29 11:09:02\n"):  # by a process that outlived the job
        (finished.root / log).write_text(newer)
        assert failed in cohort(finished, "status")
    (finished.root / log).unlink()
    (finished.root / last).unlink()
    slurm_log(finished, record, 6, "host: node1\n", age=1)  # a job that is about to begin
    assert counts(finished, "two") == {"done": 1, "missing": 1}
