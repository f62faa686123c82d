"""Cells that one process trains as one stack end as if each had been trained alone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cohort.core.errors import UserError
from cohort.core.files import is_locked, lock
from cohort.core.hdf5 import new_hdf5
from cohort.core.paths import plan_file, record_file, state_folder, train_log
from cohort.core.sealed_json import write_sealed
from cohort.data import samples
from cohort.data.shards import Shards, write
from cohort.data.store import FORMAT
from cohort.records.record import Record, read
from cohort.selection.entropy import Entropy
from cohort.settings import PlannedFile, digest_of
from cohort.training import contract
from cohort.training.cell import cell_of, read_cell
from cohort.training.job import stacking
from cohort.training.job import train as job
from cohort.training.job.lease import FINISHED, GROUP, is_held, saved_header
from cohort.training.job.train import train
from cohort.training.objectives import FedRS
from cohort.training.rounds import Rounds
from cohort.training.trainers.stacked import Stack
from tests.workflow.conftest import wait_for
from tests.workflow.test_kill import assert_same_numbers

CLASSES, SIZES = 3, (4, 9, 2, 6, 13)
PLAIN: dict[str, Any] = {
    "dataset": "none", "model": "small-mlp", "partition": "iid", "J": "J2e", "strategy": "fedavg",
    "seed": 0, "clients": len(SIZES), "cohort": 3, "rounds": 6, "batch": 4, "lr": 0.1,
    "reserve": 6, "momentum": 0.9, "clip": 1.0, "selector": {"name": "random"},
    "objective": {"name": "cross-entropy"}, "server": {"name": "average"},
}  # fmt: skip
UNEQUAL: list[dict[str, Any]] = [
    {"rounds": 9, "seed": 1},
    {"participation": "dropout-0.4", "objective": {"name": "fedprox", "mu": 0.5}, "rounds": 4},
    {"participation": "stragglers-0.5", "lr": 0.01, "evaluate_every": 3},
    {"selector": {"name": "probe"}, "strategy": "probe", "seed": 2},
    {"server": {"name": "scaffold"}, "momentum": 0.9, "strategy": "scaffold", "cohort": 5},
    {"selector": {"name": "entropy"}, "objective": {"name": "fedrs"}, "strategy": "entropy"},
]
DIVERGING = {"rounds": 14}, {"lr": 1e200}, {"rounds": 7}
NUMBERS = signal.SIGINT, signal.SIGTERM, signal.SIGALRM


PROCESS = """
import sys
import tempfile
from cohort.training.job.train import train
options = {"device": "cpu", "trainer": "batched", "jobs_per_gpu": 3, "checkpoint_seconds": 0.1}
train(*sys.argv[1:], **options)
"""


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with a data set and the shards of two seeds."""
    samples.load.cache_clear()  # of another test's file of this name
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    rng, count = np.random.default_rng(5), sum(SIZES)
    labels = rng.integers(0, CLASSES, count)
    with new_hdf5(Path("data.h5")) as file:
        file.attrs.update(format=FORMAT, classes=CLASSES, scale=255.0, mean=[0.5], std=[0.25])
        for split in ("train", "test"):
            images = rng.integers(0, 256, (count, 1, 8, 8), dtype=np.uint8)
            file[f"{split}/values"], file[f"{split}/labels"] = images, labels.astype(np.uint16)
    for seed in range(3):
        held = np.split(rng.permutation(count), np.cumsum(SIZES)[:-1])
        counts = [np.bincount(labels[part], minlength=CLASSES) for part in held]
        write(f"shards{seed}.h5", Shards(held, np.stack(counts)))


def planned(**changes: Any) -> PlannedFile:
    """Write the plan file of a cell."""
    settings = PLAIN | changes
    inputs = {"data": "data.h5", "shards": f"shards{settings['seed']}.h5"}
    plan = PlannedFile("", "", settings, {}, inputs)
    digest = digest_of(cell_of(plan).identity(), {})
    plan = replace(plan, digest=digest, path=record_file(settings, digest))
    plan_file(digest).parent.mkdir(parents=True, exist_ok=True)
    write_sealed(plan_file(digest), vars(plan))
    return plan


def train_cell(plan: PlannedFile, **options: Any) -> None:
    train(plan_file(plan.digest), plan.path, device="cpu", trainer="batched", **options)


def alone(plan: PlannedFile) -> Record:
    """The record of a cell that is trained alone, and then deleted."""
    train_cell(plan)
    record = read(plan.path)
    forget(plan)
    return record


def forget(plan: PlannedFile) -> None:
    Path(plan.path).unlink()
    shutil.rmtree(state_folder(plan.path))


def finished(plan: PlannedFile) -> Record:
    """The record of a cell that is done, published or not."""
    return read(plan.path if Path(plan.path).exists() else state_folder(plan.path) / FINISHED)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[PlannedFile]]:
    """Plan cells as those of one SLURM job."""

    def plan_group(*cells: dict[str, Any]) -> list[PlannedFile]:
        plans = [planned(**changes) for changes in cells]
        monkeypatch.setenv(GROUP, " ".join(plan.digest for plan in plans))
        return plans

    return plan_group


def test_unequal_cells_equal_each_cell_alone(group, monkeypatch: pytest.MonkeyPatch):
    plans = [planned(**changes) for changes in UNEQUAL]
    expected = list(map(alone, plans))
    sizes, stack_train = [], Stack.train
    monkeypatch.setattr(
        Stack, "train", lambda self, parts: [sizes.append(len(parts)), stack_train(self, parts)][1]
    )
    group(*UNEQUAL)
    began = time.perf_counter()
    train_cell(plans[0])
    passed, seconds = time.perf_counter() - began, 0.0
    for plan, record in zip(plans, expected, strict=True):
        assert_same_numbers(finished(plan), record)
        seconds += sum(value for _, value in finished(plan).history.cost["seconds"])
        assert plan is plans[0] or "start at round 0" in train_log(plan.path).read_text()
        train_cell(plan)
        assert_same_numbers(read(plan.path), record)
    assert passed / 5 < seconds < passed  # each cell's share
    assert sizes[0] == 6 and sizes[-1] == 1


def test_cells_that_differ_in_a_common_setting_are_left_alone(group):
    plans = group({}, {"seed": 1}, {"J": "J3"}, {"momentum": 0.0}, {"batch": 3})
    train_cell(plans[0])
    folders = [state_folder(plan.path) for plan in plans]
    assert [folder.exists() for folder in folders] == [True, True, False, False, False]


def fail(*args: Any) -> Any:
    raise ValueError("a mistake")


@pytest.mark.parametrize(
    ("owner", "method", "mistake", "message"),
    [
        (Entropy, "observe", fail, "ValueError: a mistake"),
        (FedRS, "losses", fail, "ValueError: a mistake"),  # while all are trained
    ],
)
def test_a_mistake_in_a_component_ends_its_cell_alone(
    owner: type, method: str, mistake: Any, message: str, group, monkeypatch: pytest.MonkeyPatch
):
    expected = [alone(planned(**UNEQUAL[number])) for number in (0, 3)]
    first, bad, last = group(UNEQUAL[0], UNEQUAL[5], UNEQUAL[3])
    monkeypatch.setattr(contract, "COMPONENTS", (*contract.COMPONENTS, __name__))
    monkeypatch.setattr(owner, method, mistake)
    train_cell(first)
    for plan, record in zip((first, last), expected, strict=True):
        assert_same_numbers(finished(plan), record)
    sentence = f"strategy 'entropy', round 1: .*{message}"
    assert re.search(rf"\nerror: {sentence}", train_log(bad.path).read_text())
    with pytest.raises(UserError, match=sentence):
        train_cell(bad)


def test_a_pack_whose_first_cell_fails_is_trained(group, monkeypatch: pytest.MonkeyPatch):
    """Snakemake begins no other job of it."""
    expected = [alone(planned(**UNEQUAL[number])) for number in (0, 3)]
    bad, *others = group(UNEQUAL[5], UNEQUAL[0], UNEQUAL[3])
    monkeypatch.setattr(Entropy, "begin", fail)  # before its first training
    with pytest.raises(ValueError, match="a mistake"):
        train_cell(bad)
    for plan, record in zip(others, expected, strict=True):
        assert_same_numbers(finished(plan), record)


def test_a_host_ends_with_its_own_cell(monkeypatch: pytest.MonkeyPatch):
    """A cell of a process that waits is then at a checkpoint, from which that one goes on."""
    monkeypatch.setattr(stacking, "LAST_SECONDS", 0)
    own, other = planned(rounds=3), planned(seed=1)
    expected = alone(other)
    cell = read_cell(plan_file(own.digest))
    folder = job.stack_folder(cell, own.path, torch.device("cpu"), "batched")
    assert folder is not None
    with lock(folder / other.digest):
        train_cell(own, jobs_per_gpu=2)
    assert saved_header(state_folder(other.path))["round"] == 3
    assert not is_held(state_folder(other.path))
    train_cell(other, jobs_per_gpu=2)
    assert_same_numbers(read(other.path), expected)


def test_a_cell_that_diverges_is_a_result_and_harms_none(group):
    expected = [alone(planned(clip=0.0, rounds=rounds)) for rounds in (14, 7)]
    own, bad, other = group(*({"clip": 0.0} | changes for changes in DIVERGING))
    train_cell(own)
    assert finished(bad).header["status"] == "diverged"
    for plan, record in zip((own, other), expected, strict=True):
        assert_same_numbers(finished(plan), record)


def test_fewer_clients_at_once_if_the_memory_is_too_small(group, monkeypatch: pytest.MonkeyPatch):
    """The largest cohort, of five clients, is trained in two stacks."""
    expected = [alone(planned(**changes)) for changes in UNEQUAL]
    plans, train_stack, sizes, stacks = group(*UNEQUAL), Stack.train, [], list[Stack]()

    def train_few(stack: Stack, parts: Any) -> Any:
        sizes.append(sum(len(part.works) for part in parts))
        stacks.append(stack)
        if sizes[-1] > 4:
            raise torch.cuda.OutOfMemoryError
        return train_stack(stack, parts)

    monkeypatch.setattr(Stack, "train", train_few)
    train_cell(plans[0])
    assert len(set(map(id, stacks))) < 10  # though the parts of a round have other objectives
    assert [size for size in sizes if size > 4] == [21, 10, 5]
    for plan, record in zip(plans, expected, strict=True):
        assert_same_numbers(finished(plan), record)


@pytest.mark.parametrize(
    ("owner", "method", "call", "seconds"),
    [
        (Stack, "train", 4, 0),
        (Stack, "train", 4, 3),  # given up while all are trained
        (Rounds, "evaluate", 16, 0),
        (Rounds, "evaluate", 16, 3),  # given up while one cell is evaluated
    ],
)
def test_a_signal_saves_all_cells(
    owner: type, method: str, call: int, seconds: int, group, monkeypatch: pytest.MonkeyPatch
):
    """Cells that resume from these checkpoints end with the numbers of an undisturbed run."""
    monkeypatch.setattr(job, "PATIENCE_SECONDS", 1)
    expected = [alone(planned(**changes)) for changes in UNEQUAL]
    plans, original, calls = group(*UNEQUAL), getattr(owner, method), []

    def signaled(*arguments: Any) -> Any:
        calls.append(None)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(seconds)
        return original(*arguments)

    before = [signal.getsignal(number) for number in NUMBERS]
    monkeypatch.setattr(owner, method, signaled)
    with pytest.raises(UserError, match=r"stopped inside round .* by signal SIGTERM"):
        train_cell(plans[0])
    for number, handler in zip(NUMBERS, before, strict=True):
        signal.signal(number, handler)
    headers = [saved_header(state_folder(plan.path)) for plan in plans]
    assert all(header["round"] > 0 for header in headers)
    assert not any(is_held(state_folder(plan.path)) for plan in plans)
    monkeypatch.setattr(owner, method, original)
    train_cell(plans[0])
    for plan, record in zip(plans, expected, strict=True):
        assert_same_numbers(finished(plan), record)
        assert len(finished(plan).header["provenance"]["sessions"]) == 2


def start(plan: PlannedFile) -> subprocess.Popen:
    """Train a cell in a process of its own."""
    command = [sys.executable, "-c", PROCESS, str(plan_file(plan.digest)), plan.path]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=os.environ | {"TMPDIR": str(Path.cwd())}, **options)


def has_begun(plan: PlannedFile) -> bool:
    folder = state_folder(plan.path)
    return is_held(folder) and saved_header(folder).get("round", 0) > 0


@pytest.mark.slow
def test_a_process_that_is_killed_costs_its_stack_no_cell():
    plans = [planned(seed=seed, rounds=300) for seed in range(3)]
    expected = list(map(alone, plans))
    processes = []
    for plan in plans:  # one after another, so that the first one is the host
        processes.append(start(plan))
        wait_for(lambda: has_begun(plan))  # noqa: B023
    for victim in (2, 0):  # one that waits, then the host
        processes[victim].kill()
        processes[victim].wait()
        wait_for(lambda: not is_held(state_folder(plans[victim].path)))  # noqa: B023
    output, _ = processes[1].communicate(timeout=60)
    assert processes[1].returncode == 0, output
    assert [Path(plan.path).exists() for plan in plans] == [False, True, False]
    for plan, record in zip(plans, expected, strict=True):
        if plan is not plans[1]:
            train_cell(plan)
        assert_same_numbers(finished(plan), record)
        assert len(finished(plan).header["provenance"]["sessions"]) > 1
    assert any("saved inside" in train_log(plan.path).read_text() for plan in plans[1:])


def test_a_cell_that_fails_in_a_stack_goes_back_to_its_process(tmp_path: Path):
    """Which waits for its host no longer, though the host goes on."""
    request_file, ctrl_c = tmp_path / "k1", signal.getsignal(signal.SIGINT)

    def fail_cell() -> None:
        wait_for(lambda: is_locked(request_file))
        time.sleep(0.5)
        request_file.unlink()

    with ThreadPoolExecutor(1) as other, lock(tmp_path / stacking.HOST):
        failing = other.submit(fail_cell)
        assert stacking.become_host(tmp_path, "k1", lambda: False) is None
        failing.result()
    signal.signal(signal.SIGINT, ctrl_c)
