"""Cells that are killed or stopped inside a round end as if undisturbed."""

from __future__ import annotations

import random
import re
import signal
import time
from pathlib import Path

import pytest

from cohort.records.record import read
from tests.workflow.conftest import Project, wait_for
from tests.workflow.test_kill import assert_same_numbers, made_once, run_by_hand


def long_rounds(project: Project) -> tuple[str, Path]:
    """A cell whose rounds take seconds, and its record's path."""
    study = project.study()
    study["settings"] |= {"rounds": 2, "momentum": 0.5}
    axes = {"partition": ["iid"], "J": ["J30000"], "strategy": ["fedavg"], "seed": [0]}
    study["experiments"] = {"one": {"axes": axes}}
    del study["figures"], study["tables"]
    project.write(study)
    (path,) = project.cells()
    return path, project.root / path


@pytest.mark.slow
def test_killed_inside_a_round(fresh: Project):
    cell, record = long_rounds(fresh)
    undisturbed = made_once(fresh, cell, record)
    checkpoint = record.with_suffix(".state") / "checkpoint.safetensors"
    process = run_by_hand(fresh, cell)
    wait_for(checkpoint.exists)
    delay = random.uniform(0, 0.2)
    print(f"killed {delay:.3f} s after its first checkpoint")  # shown if the test fails
    time.sleep(delay)
    process.kill()
    process.wait()
    assert not record.exists(), "the cell was over before it could be killed"

    process = run_by_hand(fresh, cell)
    wait_for(lambda: "saved inside round" in read_some(process))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert re.search(r"stopped inside round \d: .*, by signal SIGTERM; start again", output), output

    process = run_by_hand(fresh, cell)
    output, _ = process.communicate()
    assert process.returncode == 0 and "resume inside round" in output, output
    assert_same_numbers(undisturbed, read(record))
    assert not record.with_suffix(".state").exists()


def read_some(process) -> str:
    """The next line of a process's output."""
    line = process.stdout.readline()
    assert line or process.poll() is None, "the process ended"
    return line
