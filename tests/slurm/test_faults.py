"""What clusters do to jobs: each ends with the record of an undisturbed run, and no cell is made twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cohort.records.record import Record, read
from tests.slurm.conftest import OVER, Lab, command
from tests.workflow.conftest import Project
from tests.workflow.conftest import wait_for as wait_at_most
from tests.workflow.test_kill import assert_same_numbers

KILLS = 3
SHORT = {"rounds": 1600, "momentum": 0.5, "lr_decay": 0.999, "evaluate_every": 100}  # some seconds


def wait_for(condition: Callable[[], object]) -> None:
    """A job takes its time to start where others start too. Each look asks SLURM, so there are few."""
    wait_at_most(condition, 300, every=0.5)


def compare_with_undisturbed(lab: Lab, folder: Path) -> None:
    """The records are those of the same cells in a copy of the project, trained without SLURM."""
    copy = Project(Path(shutil.copytree(lab.root, folder, symlinks=True)))
    shutil.rmtree(copy.root / "results/cells")
    copy.snakemake("--until", "train")
    assert len(copy.records()) == len(lab.records())
    for path in lab.records():
        assert_same_numbers(read(path), read(copy.root / path.relative_to(lab.root)))


def the_record(lab: Lab) -> Record:
    """The only record of the study."""
    (path,) = lab.records()
    assert not list(lab.root.rglob("*.state"))
    return read(path)


def kill_often(lab: Lab, cells: int, times: int) -> list[int]:
    """Kill the process of every cell so many times, each at a random moment; how many sessions each cell had in the end."""
    lab.profile(retries=times)
    driver = lab.begin()
    rng, killed = random.Random(time.time_ns()), Counter[Path]()
    while killed.total() < cells * times:
        for process, folder in lab.training().items():
            if killed[folder] < times and (folder / "checkpoint.safetensors").exists():
                os.kill(process, signal.SIGKILL)
                killed[folder] += 1
                wait_at_most(lambda ended=Path(f"/proc/{process}"): not ended.exists(), 60)
        assert driver.poll() is None, "a cell was over before it could be killed"
        time.sleep(rng.uniform(0, 0.3))
    output, _ = driver.communicate(timeout=900)
    assert driver.returncode == 0, output
    assert len(lab.jobs()) == cells * (times + 1)
    sessions = [read(path).header["provenance"]["sessions"] for path in lab.records()]
    assert all(session[-1]["from_round"] > 0 for session in sessions)
    return [len(session) for session in sessions]


def test_killed_in_the_middle_of_rounds(lab: Lab, tmp_path: Path):
    lab.cells(KILLS, **SHORT)
    kill_often(lab, KILLS, 1)
    compare_with_undisturbed(lab, tmp_path / "copy")


def only_on_request(lab: Lab) -> None:
    """No checkpoint but the one that a signal asks for."""
    lab.replace("config/config.yaml", "checkpoint_seconds: 0.5", "checkpoint_seconds: 100000")


def log_of(lab: Lab) -> str:
    """What the last attempt at the only cell says; Snakemake removes the logs of those before."""
    return "".join(log.read_text() for log in (lab.root / "results/logs/train").rglob("*.log"))


def pause_in_the_middle(lab: Lab) -> None:
    """Stop the process of the only cell, however fast it is, until SLURM says CONT and TERM."""
    wait_at_most(lambda: "start at round 0" in log_of(lab), 300, every=0.05)
    time.sleep(0.7)
    (process,) = lab.processes()
    os.kill(process, signal.SIGSTOP)


def test_time_limit(lab: Lab):
    """SLURM's warning before the end is enough for a checkpoint of the round in hand; submitted again, the cell finishes."""
    lab.cells(1, **SHORT)
    only_on_request(lab)
    lab.profile(**{"set-resources": {"train": {"runtime": 1}}, "retries": 1})
    driver = lab.begin()
    pause_in_the_middle(lab)  # a minute is the shortest limit
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0 and "error: train: " in output, output
    first, second = lab.jobs()
    assert first.state in ("TIMEOUT", "FAILED") and second.state == "COMPLETED"
    assert the_record(lab).header["provenance"]["sessions"][-1]["from_round"] > 0


alone_on_urgent = pytest.mark.xdist_group(
    "urgent"
)  # one's job would make the other's cell give way


def preempted(lab: Lab) -> None:
    """The job of the only cell has to make room in the middle, and the cell goes on from there."""
    driver = lab.begin()
    pause_in_the_middle(lab)
    urgent = ["sbatch", "--partition=urgent", "--ntasks=2", "--wrap=sleep 1"]
    command(*urgent, "--output=/dev/null", f"--chdir={lab.root.parent}")
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, output
    assert "start at round 0" not in log_of(lab)
    first, *later = the_record(lab).header["provenance"]["sessions"]
    assert first["from_round"] == 0 < later[0]["from_round"]


@alone_on_urgent
def test_preempted_and_started_again_by_slurm(lab: Lab):
    """Under its old number, and not submitted again beside that."""
    lab.cells(1, **SHORT)
    lab.profile("low")
    preempted(lab)
    assert [(job.state, job.restarts) for job in lab.jobs()] == [("COMPLETED", 1)]


@alone_on_urgent
def test_preempted_and_submitted_again(lab: Lab):
    """SLURM cancels it for good after a warning, which is enough for a checkpoint."""
    lab.cells(1, **SHORT)
    only_on_request(lab)
    lab.profile("canceled", **{"slurm-no-requeue": True})
    preempted(lab)
    *canceled, last = [(job.state, job.restarts) for job in lab.jobs()]
    assert last == ("COMPLETED", 0)
    assert set(canceled) == {("FAILED", 0)}  # twice if it begins again before the urgent job does


def test_scancel_and_a_node_that_goes_down_and_comes_back(lab: Lab):
    lab.cells(1, **SHORT)
    lab.profile("fails", retries=2)
    driver = lab.begin()
    wait_for(lambda: lab.checkpoints() and lab.processes())
    subprocess.run(["scancel", lab.jobs()[0].number], check=True)
    wait_for(lambda: len(lab.jobs()) == 2 and lab.processes())
    command("scontrol", "update", "NodeName=node2", "State=DOWN", "Reason=test")
    wait_for(lambda: not lab.processes())
    subprocess.run(
        ["scontrol", "update", "NodeName=node2", "State=RESUME"], check=False
    )  # it may be back by itself
    output, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0, output
    states = [(job.state, job.restarts) for job in lab.jobs()]
    assert states == [("CANCELLED", 0), ("COMPLETED", 1)]
    assert the_record(lab).header["provenance"]["sessions"][-1]["from_round"] > 0


def test_too_little_memory(lab: Lab):
    """Asked for again with more; where that is not enough either, the failure names the cell."""
    lab.cells(1, **SHORT)
    lab.profile(**{"set-resources": {"train": {"mem_mb": "300 * attempt"}}, "retries": 2})
    lab.run()
    states = [job.state for job in lab.jobs()]
    assert states[0] == "FAILED" and states[-1] == "COMPLETED"
    (path,) = lab.records()
    path.unlink()
    lab.profile(**{"set-resources": {"train": {"mem_mb": 100}}, "retries": 0})
    assert f"failed: {path.relative_to(lab.root)}" in lab.run(fails=True)
    status = subprocess.run(
        ["cohort", "status"], cwd=lab.root, text=True, capture_output=True, check=True
    ).stdout
    assert f"failed: {path.relative_to(lab.root)}" in status


def test_driver_killed_and_started_again(lab: Lab):
    """At once, while its orphans run on, and once more after they have ended: each record is produced once."""
    lab.cells(2, **SHORT)
    driver = lab.begin()
    wait_for(lambda: len(lab.checkpoints()) + len(lab.records()) == 2)
    driver.kill()
    driver.wait()
    killed_at = datetime.now(UTC)
    lab.run()
    for path in lab.records():
        (session,) = read(path).header["provenance"]["sessions"]
        assert datetime.fromisoformat(session["started"]) <= killed_at, (
            "an orphan's cell was trained again"
        )

    for path in lab.records():
        path.unlink()
    before = len(lab.jobs())
    driver = lab.begin()
    wait_for(lambda: len(lab.jobs()) == before + 2)
    driver.kill()
    driver.wait()
    wait_for(lambda: all(job.state in OVER for job in lab.jobs()))
    assert len(lab.records()) == 2, "orphans finish"
    assert lab.planned().get("train", 0) == 0
    lab.run()
    assert all(len(read(path).header["provenance"]["sessions"]) == 1 for path in lab.records())
