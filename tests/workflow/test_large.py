"""A study of 20,000 cells: planned in two seconds, its dry run within 1.6 times that of a bare Snakefile of as many scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from cohort.plan import load

pytestmark = pytest.mark.alone

SETTINGS = {"dataset": "digits", "model": "small-mlp", "clients": 10, "cohort": 3, "rounds": 4}
SETTINGS |= {"batch": 16, "reserve": 60}
AXES = {
    "partition": ["iid", "classes-1", "classes-2", "classes-3", "dir-0.1"],
    "J": ["J1", "J2", "J4", "J8"],
    "lr": [number / 1000 for number in range(1, 21)],
    "strategy": ["fedavg", "loss"],
    "seed": list(range(25)),
}
MOST = 1.6  # times a bare Snakefile
TRIES = 3  # a busy neighbor may slow any of them
BARE = """
rule all:
    input: [f"out/{i}.txt" for i in range(20000)]

rule job:
    output: "out/{i}.txt"
    script: "job.py"
"""


@pytest.fixture
def large(project: Path) -> Path:
    study = {"title": "Large", "settings": SETTINGS, "experiments": {"main": {"axes": AXES}}}
    (project / "config/studies/large.yaml").write_text(yaml.safe_dump(study))
    return project


def dry_run(folder: Path, *arguments: str) -> tuple[float, float]:
    """Processor seconds and peak megabytes of a dry run."""
    process = subprocess.Popen(
        [Path(sys.executable).with_name("snakemake"), "-n", "-q", *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def test_plan_of_twenty_thousand_cells(large: Path):
    """It takes less than ten times as long as writing as many settings as JSON."""
    planning, writing = [], []
    for _ in range(TRIES):
        started = time.process_time()
        plan = load({"studies": "large"})
        planning.append(time.process_time() - started)
        assert len(plan.cells) == 20_000 and len(plan.shards) == 125
        started = time.process_time()
        for cell in plan.cells.values():
            json.dumps(cell.plain_settings(), sort_keys=True)
        writing.append(time.process_time() - started)
    assert min(planning) < 10 * min(writing)


@pytest.mark.slow
def test_dry_run_of_twenty_thousand_cells(large: Path, tmp_path: Path):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "Snakefile").write_text(BARE)
    (bare / "job.py").touch()
    for _ in range(TRIES):
        reference, _ = dry_run(bare)
        seconds, megabytes = dry_run(large, "--config", "studies=large")
        print(f"{seconds:.1f} s, {seconds / reference:.2f} x a bare Snakefile, {megabytes:.0f} MB")
        assert megabytes < 1000
        if seconds < MOST * reference:
            return
    raise AssertionError(f"{seconds / reference:.2f} x a bare Snakefile in each of {TRIES} tries")
