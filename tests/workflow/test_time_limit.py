"""A cell longer than a cluster's jobs may be: each job asks for the limit, and the next one resumes."""

from __future__ import annotations

import contextlib

import pytest

from cohort.core.paths import plan_file
from cohort.records.record import read
from cohort.training.job.train import train
from tests.workflow.conftest import Project
from tests.workflow.test_kill import assert_same_numbers

SUBMIT = """#!/bin/bash
echo "$1" >> asked
number=$(wc -l < asked)
echo running > state.$number
nohup python limited.py $number "$2" > /dev/null 2>&1 &
echo $number
"""
STATUS = """#!/bin/bash
cat state.$1
"""
LIMITED = """
import os, signal, subprocess, sys, time
from pathlib import Path

number, script, submitted = int(sys.argv[1]), sys.argv[2], time.time()


def is_time_up():
    "Whether one of the first two jobs has trained far enough for a checkpoint of its own."
    saved = list(Path("results/cells").rglob("checkpoint.safetensors"))
    return number <= 2 and any(file.stat().st_mtime > submitted for file in saved)


job = subprocess.Popen(["bash", script], start_new_session=True)
while job.poll() is None and not is_time_up():
    time.sleep(0.05)
if job.poll() is None:
    os.killpg(job.pid, signal.SIGTERM)
Path(f"state.{number}").write_text("failed" if job.wait() else "success")
"""
CLUSTER = (
    *("--executor", "cluster-generic", "--jobs", "1", "--seconds-between-status-checks", "1"),
    *("--cluster-generic-submit-cmd", "./submit.sh {resources.runtime}"),
    *("--cluster-generic-status-cmd", "./status.sh"),
)


@pytest.mark.slow
def test_resumed_job_by_job_until_it_is_done(finished: Project):
    """The cell is estimated at 20.5 seconds, and a job requests three times as much: more than the
    one minute that is allowed. Two jobs are one driver's, the third the next one's."""
    study = finished.study()
    study["settings"] |= {"rounds": 5000, "evaluate_every": 1000}
    study["experiments"]["two"]["axes"]["seed"] = [0]
    finished.write(study)
    finished.narrow()
    for name, text in (("submit.sh", SUBMIT), ("status.sh", STATUS), ("limited.py", LIMITED)):
        (finished.root / name).write_text(text)
        (finished.root / name).chmod(0o755)
    (path,) = (finished.root / path for path in finished.cells())
    limit = ("--config", "max_runtime=1", "checkpoint_seconds=0.2")

    finished.snakemake(*CLUSTER, *limit, "--retries", "1", "--until", "train", fails=True)
    assert not path.exists()
    finished.snakemake(*CLUSTER, *limit, "--retries", "1", "--until", "train")
    assert (finished.root / "asked").read_text().split() == ["1", "1", "1"]
    resumed = read(path)
    rounds = [session["from_round"] for session in resumed.header["provenance"]["sessions"]]
    assert rounds[0] == 0 < rounds[1] < rounds[2]

    with contextlib.chdir(finished.root):
        train(plan_file(resumed.header["digest"]), undisturbed := finished.root / "undisturbed.h5")
    assert_same_numbers(resumed, read(undisturbed))
