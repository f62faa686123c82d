"""Cells and drivers that are killed, and what is left of them: nothing is lost and nothing is made twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from cohort.records.record import Record, read
from cohort.training.job.lease import saved_header
from tests.workflow.conftest import Project, wait_for

KILLS = 3


def assert_same_numbers(first: Record, second: Record) -> None:
    """Metrics, cohorts, clients and final weights agree to the last bit. Seconds do not count."""
    assert first.header["weights_sha256"] == second.header["weights_sha256"]
    assert dict(first.history.metrics) == dict(second.history.metrics)
    assert np.array_equal(first.history.cohorts, second.history.cohorts)
    for name in first.clients | second.clients:
        assert np.array_equal(first.clients[name], second.clients[name])
    costs = [
        {name: pairs for name, pairs in record.history.cost.items() if "seconds" not in name}
        for record in (first, second)
    ]
    assert costs[0] == costs[1]
    assert str(first.history.traffic) == str(second.history.traffic)


def lengthen(project: Project, rounds: int, **settings) -> None:
    study = project.study()
    study["settings"] |= {"rounds": rounds, "momentum": 0.5, "lr_decay": 0.999, **settings}
    project.write(study)


def run_by_hand(project: Project, cell: str, *arguments: str) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(project.root / "workflow")}
    command = [sys.executable, "-m", "cohort", "run", *arguments]
    command += ["--config", "checkpoint_seconds=0.05", "--", cell]
    options = {"cwd": project.root, "env": environment, "text": True}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def one_cell(project: Project) -> tuple[str, Path]:
    """The first entropy cell, which has a selector with memory, and its record's path."""
    path = next(path for path in project.cells() if "/classes-2/J2/fedentopt/" in path)
    return path, project.root / path


def made_once(project: Project, cell: str, record: Path) -> Record:
    """Train the cell, read its record, and delete it."""
    assert run_by_hand(project, cell).wait() == 0
    result = read(record)
    record.unlink()
    return result


@pytest.mark.long
def test_a_cell_killed_at_random_moments_ends_as_if_undisturbed(fresh: Project):
    lengthen(fresh, 1500)  # seconds of training, so that it cannot be over before the last kill
    cell, record = one_cell(fresh)
    undisturbed = made_once(fresh, cell, record)

    state = record.with_suffix(".state")
    rng = random.Random(time.time_ns())
    for kill in range(KILLS):
        process = run_by_hand(fresh, cell)
        if kill:
            wait_for(lambda: saved_header(state).get("round", 0) > 0)
        wait_for((state / "lease").exists)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.wait()
        assert not record.exists(), "the cell was over before it could be killed"
    # what a kill in the middle of saving leaves
    (state / ".checkpoint.dead.safetensors").write_bytes(b"half a file")
    last = run_by_hand(fresh, cell)
    output, _ = last.communicate()
    assert last.returncode == 0, output
    resumed = read(record)
    assert max(session["from_round"] for session in resumed.header["provenance"]["sessions"]) > 0
    assert "resume at round" in output or "resume inside round" in output
    assert_same_numbers(undisturbed, resumed)
    assert not state.exists()


def test_interrupted_cell_saves_its_place(fresh: Project):
    lengthen(fresh, 100_000)
    cell, record = one_cell(fresh)
    process = run_by_hand(fresh, cell)
    wait_for((record.with_suffix(".state") / "checkpoint.safetensors").exists)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "by signal SIGINT; start again to resume" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_killed_driver_is_started_again_at_once(fresh: Project):
    lengthen(fresh, 700)
    study = fresh.study()
    del study["experiments"]["one"], study["figures"], study["tables"]
    study["experiments"]["two"]["axes"]["seed"] = [0, 1, 2]
    fresh.write(study)
    fresh.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 0.3")
    first = fresh.start(start_new_session=True)
    leases = fresh.root / "results/cells"
    wait_for(lambda: len(list(leases.rglob("checkpoint.safetensors"))) >= 2)
    first.kill()
    first.wait()
    killed_at = datetime.now(UTC)
    running = [folder.parent.with_suffix(".h5") for folder in leases.rglob("lease")]
    fresh.snakemake()
    assert len(fresh.records()) == 3
    for path in fresh.records():
        sessions = read(path).header["provenance"]["sessions"]
        assert len(sessions) == 1
        if path in running:
            assert datetime.fromisoformat(sessions[0]["started"]) <= killed_at, (
                "an orphan's cell was trained again"
            )
    assert not list(leases.rglob("*.state"))
    assert "Nothing to be done" in fresh.snakemake()


@pytest.mark.slow
def test_second_driver_says_so_and_stops(fresh: Project):
    lengthen(fresh, 100_000)
    first = fresh.start(start_new_session=True)
    wait_for(lambda: list((fresh.root / "results/cells").rglob("lease")))
    output = fresh.snakemake(fails=True)
    assert "cohort restore or cohort prune is running in this directory" in output
    assert "lock_directory" not in output
    assert fresh.planned()["train"] > 0  # a dry run needs no lock
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()


@pytest.mark.slow
def test_same_numbers_twice_and_in_another_order(finished_once: Project, fresh: Project):
    study = fresh.study()
    for experiment in study["experiments"].values():
        for axis in experiment["axes"].values():
            axis.reverse()
    fresh.write(study)
    fresh.snakemake("--cores", "1", *reversed(fresh.cells()))
    for path in fresh.records():
        assert_same_numbers(read(path), read(finished_once.root / path.relative_to(fresh.root)))
    assert len(fresh.records()) == len(finished_once.records())
