"""Many kills and many jobs."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from cohort.records.record import read
from tests.slurm.conftest import Lab, command
from tests.slurm.test_faults import SHORT, compare_with_undisturbed, kill_often
from tests.slurm.test_matrix import PACKED
from tests.stress.conftest import Tell
from tests.workflow.conftest import Project, wait_for
from tests.workflow.test_kill import assert_same_numbers, lengthen

ON_SLURM = (5, 4)  # cells, and how often each is killed
AT_RANDOM, CELLS, STORMS = 100, 200, 20


def test_kills_on_slurm(lab: Lab, tmp_path: Path, tell: Tell):
    cells, times = ON_SLURM
    lab.cells(cells, **SHORT | {"rounds": 5_000})
    started = time.monotonic()
    sessions = kill_often(lab, cells, times)
    seconds = time.monotonic() - started
    compare_with_undisturbed(lab, tmp_path / "copy")
    tell(
        f"{cells * times} x SIGKILL of a job's process on SLURM: {cells} cells, each {times} times",
        f"all records bit-identical to undisturbed ones, {sum(sessions)} sessions, {seconds:.0f} s",
    )


@pytest.mark.parametrize("packed", [0, 10], ids=["one a job", "packed"])
def test_many_cells_on_slurm(lab: Lab, packed: int, tell: Tell):
    lab.cells(CELLS, rounds=2)
    lab.program = Project.program  # which asks as often as the profile that is shipped says
    shipped = {"slurm-init-seconds-before-status-checks": 40, "max-status-checks-per-second": 0.1}
    lab.profile(**shipped | (PACKED | {"group-components": [f"cells={packed}"]} if packed else {}))
    before, started = _queries(), time.monotonic()
    lab.run(timeout=3600)
    seconds = time.monotonic() - started
    assert len(lab.records()) == CELLS
    training = sum(
        value for path in lab.records() for _, value in read(path).history.cost["seconds"]
    )
    jobs = len(lab.jobs())
    tell(
        f"{CELLS} cells of {training / CELLS:.2g} s on 8 slots of SLURM, {f'{packed} to a job' if packed else 'one a job'}",
        f"{jobs} jobs, {seconds:.0f} s, {8 * (seconds - training / 8) / CELLS:.1f} slot seconds of overhead a cell, "
        f"{_queries() - before} questions to the controller",
    )


def _queries() -> int:
    """How often the controller was asked about jobs."""
    result = re.search(r"REQUEST_JOB_INFO\s.*?count:(\d+)", command("sdiag"))
    return int(result[1]) if result else 0


def test_kills_at_random_over_a_mixed_matrix(fresh: Project, tmp_path: Path, tell: Tell):
    """The driver alone, a training process, or everything at once; each time the same command is typed again."""
    lengthen(fresh, 1500)
    fresh.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 0.3")
    calm = Project(Path(shutil.copytree(fresh.root, tmp_path / "calm", symlinks=True)))
    calm.snakemake()
    rng, killed, finished = random.Random(time.time_ns()), Counter[str](), 0
    while killed.total() < AT_RANDOM:
        driver = fresh.start(start_new_session=True)
        while killed.total() < AT_RANDOM and driver.poll() is None:
            time.sleep(rng.uniform(0.2, 5))
            whom = rng.choice(["driver", "training process", "everything"])
            processes = [] if whom == "driver" else Lab(fresh.root).processes()
            if whom == "training process" and not processes:
                continue
            for process in processes[: 1 if whom == "training process" else None]:
                _kill(process)
            if whom != "training process":
                driver.kill()
            killed[whom] += 1
        output, _ = driver.communicate()
        if driver.returncode == 0:
            finished += 1
            for path in fresh.records()[::2]:
                path.unlink()
        assert "Traceback" not in output, output
    fresh.snakemake()
    assert len(fresh.records()) == len(calm.records())
    for path in fresh.records():
        assert_same_numbers(read(path), read(calm.root / path.relative_to(fresh.root)))
    assert not list(fresh.root.rglob("*.state"))
    kills = ", ".join(f"{number} {who}" for who, number in killed.items())
    tell(
        f"{AT_RANDOM} x SIGKILL at random moments over {len(calm.records())} cells ({kills})",
        f"all records bit-identical to undisturbed ones; the matrix was whole {finished + 1} times on the way",
    )


def test_storms_of_signals(fresh: Project, tmp_path: Path, tell: Tell):
    """Ctrl-C and SIGTERM many times over, to the driver alone or to its cells too: it ends each time."""
    lengthen(fresh, 1500)
    fresh.replace("config/config.yaml", "checkpoint_seconds: 60", "checkpoint_seconds: 0.3")
    calm = Project(Path(shutil.copytree(fresh.root, tmp_path / "calm", symlinks=True)))
    calm.snakemake()
    rng, slowest, signals = random.Random(time.time_ns()), 0.0, 0
    for _ in range(STORMS):
        driver = fresh.start(start_new_session=True)
        wait_for(lambda d=driver: Lab(fresh.root).processes() or d.poll() is not None, every=0.05)
        time.sleep(rng.uniform(0, 3))
        send, began = rng.choice([os.kill, os.killpg]), time.monotonic()
        while driver.poll() is None:
            assert time.monotonic() - began < 60, "a signal does not stop the driver"
            with contextlib.suppress(ProcessLookupError):
                send(driver.pid, rng.choice([signal.SIGINT, signal.SIGTERM]))
                signals += 1
            time.sleep(rng.choice([0, 0.001, 0.1]))
        slowest = max(slowest, time.monotonic() - began)
        output, _ = driver.communicate()
        assert not Lab(fresh.root).processes()
        if driver.returncode == 0:
            for path in fresh.records()[::2]:
                path.unlink()
        else:
            assert "stopped by SIG" in output and "Traceback" not in output, output
    fresh.snakemake()
    for path in fresh.records():
        assert_same_numbers(read(path), read(calm.root / path.relative_to(fresh.root)))
    tell(
        f"{STORMS} storms of Ctrl-C and SIGTERM ({signals} signals) over {len(calm.records())} cells",
        f"the driver ends within {slowest:.1f} s; all records bit-identical to undisturbed ones",
    )


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
