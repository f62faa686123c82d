"""Runs that are interrupted inside rounds, after a client or in the middle of one, resume to the bit,
whatever they train and how."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.selection.pools import Probe
from cohort.training.evaluation import fingerprint
from cohort.training.job import checkpoint
from cohort.training.job.train import TRAINERS
from cohort.training.ledger import Cursor
from cohort.training.servers import Momentum, Scaffold
from cohort.training.task import RunState, Task
from cohort.training.updates import LocalWork, Weights
from tests.training.small_task import seeded, small_task

DIGEST, CPU = "k0", torch.device("cpu")
DEFAULTS = {"J": "J2e", "batch": 3, "momentum": 0.9, "rounds": 3, "cohort": 3, "lr_decay": 0.9}
SIZES = (4, 9, 2, 6, 5)


def random_network() -> nn.Module:
    """A network with dropout and batch normalization, whose last layer is linear."""
    first = nn.Flatten, partial(nn.BatchNorm1d, 64), nn.Dropout, partial(nn.Linear, 64, 8)
    return seeded(4, *first, partial(nn.Linear, 8, 3))


def task_of(trainer: str = "serial", **changes: Any) -> Task:
    """Three rounds of two epochs by three of five clients."""
    return replace(small_task(**({"sizes": SIZES} | DEFAULTS | changes)), trainer=TRAINERS[trainer])


def probed(trainer: str) -> Task:
    """Pools of four are probed for a cohort of two."""
    selector = Probe(pool=2.0, epsilon=0.5, batches=2)
    return task_of(trainer, selector=selector, server=Momentum(), cohort=2)


ONE_EPOCH = {"J": "J1e", "batch": 4, "lr_decay": 1.0, "cohort": 5, "momentum": 0.0}


def central(schedule: str, **changes: Any) -> Task:
    """Epochs of one client, by an optimizer that lives on and a schedule of its learning rate."""
    parts = {"procedure": "centralized", "sizes": (26,), "validation": (0, 1, 2), "cohort": 1}
    return task_of(**(ONE_EPOCH | parts | {"schedule": schedule, "rounds": 4} | changes))


TASKS: dict[str, Callable[[], Task]] = {
    "serial": lambda: task_of(model=random_network(), augmentation="crop-flip"),
    "serial with Adam": lambda: task_of(optimizer="adam", momentum=0.0, lr=0.01),
    "native with SCAFFOLD": lambda: task_of("native", server=Scaffold()),
    "batched with clients that drop out": lambda: task_of(
        "batched", cohort=5, participation="bernoulli-0.5"
    ),
    "serial with probes": lambda: probed("serial"),
    "native with probes": lambda: probed("native"),
    "batched with probes": lambda: probed("batched"),
    "profiled": lambda: task_of(procedure="federated-profiled1"),
    "an empty client": lambda: small_task(sizes=(4, 0, 5), batch=2, J="J2e", rounds=2),
    "concat": lambda: task_of(procedure="concat-2-classifier0.4-warm1", model=random_network()),
    "fedtan": lambda: task_of(procedure="fedtan", model=random_network()),
    "sequential": lambda: task_of("native", procedure="sequential", **ONE_EPOCH),
    "stratified-hybrid": lambda: task_of(
        "native", procedure="stratified-hybrid-2", schedule="onecycle", **ONE_EPOCH
    ),
    "centralized": lambda: central("onecycle"),
    "centralized with Adam": lambda: central("plateau-patience0", optimizer="adam", lr=0.01),
}


class Interrupted(Exception):
    """Ends a process of these tests."""


class Process:
    """One process of a run: resumes from the checkpoint, saves after each round, and may be
    interrupted after the `client`-th client or in the `step`-th step that it takes."""

    def __init__(self, make: Callable[[], Task], path: Path, client: int = 0, step: int = 0):
        self.task, self.path, self.client, self.step = make(), path, client, step
        self.clients = self.steps = 0
        begun = self.task.procedure.begin(self.task)
        self.state, saved = checkpoint.load(path, DIGEST, begun, CPU) or (begun, {})
        self.cursor = Cursor(saved, self.is_due, self.write)

    def is_due(self) -> bool:
        self.clients += 1
        return self.clients == self.client

    def write(self, tensors: Weights) -> None:
        checkpoint.save(self.path, self.state, DIGEST, tensors)
        raise Interrupted

    def run(self, monkeypatch: pytest.MonkeyPatch) -> RunState | None:
        """The state at the end of the run; None if it was interrupted."""
        steps = LocalWork.steps

        def counted(work: LocalWork, settings: Any) -> Any:
            for step in steps(work, settings):
                self.steps += 1
                if self.steps == self.step:
                    self.cursor.save()
                yield step

        try:
            with monkeypatch.context() as patch:
                patch.setattr(LocalWork, "steps", counted)
                for state in self.task.procedure.rounds_of(self.task).run(self.state, self.cursor):
                    self.state = state
                    checkpoint.save(self.path, state, DIGEST)
        except Interrupted:
            return None
        return self.state


def assert_same(actual: RunState | None, expected: RunState) -> None:
    """To the bit, except for seconds."""
    assert actual is not None and actual.round == expected.round
    assert fingerprint(actual.weights) == fingerprint(expected.weights)
    assert fingerprint(actual.server) == fingerprint(expected.server)
    for arrays, others in (
        (actual.selector, expected.selector),
        (actual.reports, expected.reports),
        (actual.history.arrays(), expected.history.arrays()),
    ):
        assert set(arrays) == set(others)
        for name in arrays:
            if "seconds" not in name:
                np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)


@pytest.mark.parametrize("name", TASKS)
def test_interrupted_runs_resume_to_the_bit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = Process(TASKS[name], tmp_path / "whole" / "checkpoint")
    expected = whole.run(monkeypatch)
    assert expected is not None
    stops = [
        {"client": n} for n in {1, whole.clients // 2, whole.clients} if 0 < n <= whole.clients
    ]
    stops += [{"step": step} for step in (2, whole.steps // 2, whole.steps - 1)]
    for number, stop in enumerate(stops):
        path = tmp_path / str(number) / "checkpoint"
        assert Process(TASKS[name], path, **stop).run(monkeypatch) is None
        resumed = Process(TASKS[name], path)
        assert_same(resumed.run(monkeypatch), expected)
        if "client" in stop:  # no client is trained twice
            assert resumed.clients == whole.clients - stop["client"]
