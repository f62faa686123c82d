"""Runs that are interrupted inside rounds resume to the bit, whatever they train and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cohort.selection.entropy import Entropy
from cohort.selection.pools import Probe
from cohort.selection.simple import HighestLoss
from cohort.training.cursor import Cursor, strip_prefix
from cohort.training.evaluation import fingerprint
from cohort.training.job import checkpoint
from cohort.training.objectives import FedProx
from cohort.training.servers import FedNova, Momentum, Scaffold
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers import native
from cohort.training.trainers.batched.trainer import BatchedTrainer
from cohort.training.trainers.native import NativeTrainer
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Weights
from tests.training.small_task import (
    plain_samples,
    random_samples,
    small_model,
    small_task,
    trainer_of,
)
from tests.training.small_task import train as train_clients

DIGEST, CPU = "k0", torch.device("cpu")
SIZES = (4, 9, 2, 6, 5)


@pytest.fixture(autouse=True)
def one_step_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that native code can be interrupted after each step, as others are."""
    monkeypatch.setattr(native, "FIRST", 1)
    monkeypatch.setattr(native, "SECONDS", 0)


def random_network() -> nn.Module:
    """A network with dropout and batch normalization, whose last layer is linear."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return nn.Sequential(
            nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(0.5), nn.Linear(64, 8), nn.Linear(8, 3)
        ).double()


class Recurrent(nn.Module):
    """Two layers of an LSTM with dropout between them, on the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, num_layers=2, dropout=0.5, batch_first=True)
        self.last = nn.Linear(6, 3)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.lstm(inputs.flatten(1, 2))[0][:, -1])


def recurrent_network() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        return Recurrent().double()


def in_float32() -> dict[str, Any]:
    """Samples and a network in float32."""
    samples = random_samples(sum(SIZES), 2)
    values = plain_samples(samples.values.float(), samples.labels)
    zero, one = torch.zeros(1), torch.ones(1)
    train = replace(values, mean=zero, std=one)
    return {"train": train, "test": train, "model": small_model("small-cnn").float()}


def federated(trainer: str, **parts: Any) -> Task:
    """Three rounds of two epochs by three of five clients."""
    usual = {"J": "J2e", "batch": 3, "momentum": 0.9, "rounds": 3, "cohort": 3, "lr_decay": 0.9}
    return replace(small_task(sizes=SIZES, **(usual | parts)), trainer=trainer)


def probed(trainer: str, **parts: Any) -> Task:
    """Pools of four are probed for a cohort of two."""
    selector = Probe(pool=2.0, epsilon=0.5, batches=2)
    return federated(trainer, selector=selector, server=Momentum(), cohort=2, **parts)


def centralized(schedule: str, **parts: Any) -> Task:
    usual = {"J": "J1e", "batch": 4, "momentum": 0.9, "rounds": 4, "model": random_network()}
    every = {"procedure": "centralized", "schedule": schedule, "validation": (0, 1, 2, 3, 4)}
    return small_task(sizes=(26,), **every, **(usual | parts))


def concat(**parts: Any) -> Task:
    """Three rounds of stage 1 and two of stage 2."""
    usual = {"J": "J3", "batch": 2, "momentum": 0.9, "rounds": 5, "cohort": 3}
    procedure = "concat-2-classifier0.4-warm1"
    return small_task(sizes=SIZES, model=random_network(), procedure=procedure, **(usual | parts))


def fedtan(**parts: Any) -> Task:
    """Three rounds of two epochs; clients take the first step of each together."""
    usual = {"J": "J2e", "batch": 3, "momentum": 0.9, "rounds": 3, "cohort": 3, "lr_decay": 0.9}
    given = {"model": random_network(), "procedure": "fedtan"} | usual | parts
    return small_task(sizes=SIZES, **given)


TASKS: dict[str, Callable[[], Task]] = {
    "serial": lambda: federated("serial"),
    "native": lambda: federated("native"),
    "batched": lambda: federated("batched"),
    "native in float32": lambda: federated("native", **in_float32()),
    "serial with dropout and batch normalization": lambda: federated(
        "serial", model=random_network()
    ),
    "serial with a recurrent network": lambda: federated("serial", model=recurrent_network()),
    "serial with Adam": lambda: federated("serial", optimizer="adam", momentum=0.0, lr=0.01),
    "serial with clipped gradients": lambda: federated("serial", clip=0.1, weight_decay=0.01),
    "serial with a proximal term": lambda: federated("serial", objective=FedProx(mu=0.5)),
    "serial with augmentation": lambda: federated("serial", augmentation="crop-flip"),
    "batched with augmentation": lambda: federated("batched", augmentation="crop-flip"),
    "serial with SCAFFOLD": lambda: federated("serial", server=Scaffold()),
    "native with SCAFFOLD": lambda: federated("native", server=Scaffold()),
    "batched with SCAFFOLD": lambda: federated("batched", server=Scaffold()),
    "serial with FedNova and stragglers": lambda: federated(
        "serial", server=FedNova(), participation="stragglers-0.6"
    ),
    "batched with clients that drop out": lambda: federated(
        "batched", cohort=5, rounds=4, participation="bernoulli-0.5"
    ),
    "serial with noisy label counts": lambda: federated(
        "serial", selector=Entropy(epsilon=0.5, buffer=0.5)
    ),
    "native with reserved losses": lambda: federated("native", selector=HighestLoss()),
    "serial with probes": lambda: probed("serial"),
    "serial with probes and dropout": lambda: probed("serial", model=random_network()),
    "profiled": lambda: federated("serial", procedure="federated-profiled1"),
    "profiled with probes": lambda: probed("serial", procedure="federated-profiled1"),
    "native with probes": lambda: probed("native"),
    "batched with probes": lambda: probed("batched"),
    "an empty client": lambda: small_task(
        sizes=(4, 0, 5), batch=2, J="J2e", rounds=2, momentum=0.9
    ),
    "centralized": lambda: centralized("constant"),
    "centralized with onecycle": lambda: centralized("onecycle"),
    "centralized with plateau": lambda: centralized("plateau-patience1"),
    "centralized with Adam": lambda: centralized("onecycle", optimizer="adam", momentum=0.0),
    "concat": concat,
    "stratified-single": lambda: replace(
        small_task(sizes=SIZES, J="J1e", batch=1, rounds=3, procedure="stratified-single"),
        trainer="native",
    ),
    "stratified-batch": lambda: small_task(
        sizes=SIZES, J="J1e", batch=4, rounds=3, procedure="stratified-batch", schedule="onecycle"
    ),
    "stratified-hybrid": lambda: replace(
        small_task(
            **{"sizes": SIZES, "J": "J1e", "batch": 4, "rounds": 3, "momentum": 0.9},
            **{"procedure": "stratified-hybrid-2", "schedule": "onecycle"},
        ),
        trainer="native",
    ),
    "sequential": lambda: small_task(sizes=SIZES, J="J1e", rounds=3, procedure="sequential"),
    "fedtan": fedtan,
    "fedtan with stragglers": lambda: fedtan(participation="stragglers-0.6"),
    "fedtan with augmentation": lambda: fedtan(augmentation="crop-flip", clip=0.1),
    "concat with a proximal term": lambda: concat(objective=FedProx(mu=0.5)),
}


class Interrupted(Exception):
    """Ends a process of these tests."""


class Process:
    """One process of a run: resumes from the checkpoint, saves after each round, and may be
    interrupted at the `at`-th place that it reaches."""

    def __init__(self, make: Callable[[], Task], folder: Path, at: int = 0):
        folder.mkdir(exist_ok=True)
        self.task, self.path, self.at, self.places = make(), folder / "checkpoint", at, 0
        begun = self.task.procedure.begin(self.task)
        loaded = checkpoint.load(self.path, DIGEST, begun, CPU)
        self.state, saved = loaded or (begun, {})
        self.cursor = Cursor(saved, self.is_due, self.write)

    def is_due(self) -> bool:
        self.places += 1
        return self.places == self.at

    def write(self, tensors: Weights) -> None:
        checkpoint.save(self.path, self.state, DIGEST, tensors)
        raise Interrupted

    def run(self) -> bool:
        """Whether the run came to its end."""
        try:
            for state in self.task.procedure.rounds(self.task, self.state, self.cursor):
                self.state = state
                checkpoint.save(self.path, state, DIGEST)
        except Interrupted:
            return False
        return True


def whole_run(make: Callable[[], Task], folder: Path) -> tuple[RunState, int]:
    """The state at the end of an uninterrupted run, and how many places it passed."""
    process = Process(make, folder / "whole")
    assert process.run()
    assert process.state.round == process.task.settings.rounds
    return process.state, process.places


def assert_same(actual: RunState, expected: RunState) -> None:
    """To the bit, except for seconds."""
    assert actual.round == expected.round
    assert fingerprint(actual.weights) == fingerprint(expected.weights)
    assert fingerprint(actual.server) == fingerprint(expected.server)
    for mine, other in (
        (actual.selector, expected.selector),
        (actual.reports, expected.reports),
        (actual.history.arrays(), expected.history.arrays()),
    ):
        assert set(mine) == set(other)
        for name in mine:
            if "seconds" not in name:
                np.testing.assert_array_equal(mine[name], other[name], err_msg=name)


@pytest.mark.parametrize("name", TASKS)
def test_interrupted_once(name: str, tmp_path: Path):
    """Early, in the middle and late. The resumed process takes only the steps that were left."""
    expected, places = whole_run(TASKS[name], tmp_path)
    assert places > 7
    for at in (2, places // 2, places - 1):
        folder = tmp_path / str(at)
        assert not Process(TASKS[name], folder, at).run()
        resumed = Process(TASKS[name], folder)
        assert resumed.run() and resumed.places == places - at
        assert_same(resumed.state, expected)


@pytest.mark.parametrize("name", TASKS)
def test_interrupted_after_every_step(name: str, tmp_path: Path):
    """Each process comes one place further."""
    expected, places = whole_run(TASKS[name], tmp_path)
    processes = 0
    while not (process := Process(TASKS[name], tmp_path / "c", at=1)).run():
        processes += 1
        assert processes <= places
    assert processes == places
    assert_same(process.state, expected)


@pytest.mark.parametrize(
    "name", ["serial", "native", "batched", "serial with probes and dropout", "concat", "fedtan"]
)
def test_given_up_between_two_places(name: str, tmp_path: Path):
    """Without the state within a client's work only finished clients are saved; the others train
    again, which changes no bit."""
    expected, places = whole_run(TASKS[name], tmp_path)
    for at in (2, places // 3, places - 2):

        class GivenUp(Process):
            def is_due(self) -> bool:
                super().is_due()
                if self.places == self.at:
                    raise RuntimeError
                return False

        process = GivenUp(TASKS[name], tmp_path / str(at), at)
        with pytest.raises(RuntimeError):
            process.run()
        with pytest.raises(Interrupted):
            process.cursor.save()
        resumed = Process(TASKS[name], tmp_path / str(at))
        assert resumed.run() and places - at <= resumed.places < places - at + 12
        assert_same(resumed.state, expected)


def test_a_place_holds_finished_clients_and_the_state_of_the_current_one():
    """In the third step of three clients with two steps each, the first client is finished."""
    for kind, finished in ((SerialTrainer, 1), (NativeTrainer, 1), (BatchedTrainer, 0)):
        task, saved = small_task(sizes=(4, 4, 4), J="J2", momentum=0.9), []
        cursor = Cursor(is_due=lambda: True, write=saved.append)
        cursor.begin_round(())
        trainer = trainer_of(task, kind)
        weights = task.initial_weights()
        works = trainer.full_work(weights, [2, 0, 1], 1)
        updates = trainer.train(works, weights, cursor.next_call())
        assert len(saved) == (6 if kind is not BatchedTrainer else 2)
        rows = strip_prefix(saved[2 if finished else 1], "work0/finished/")
        assert len(rows.get("steps", ())) == finished
        if finished:
            for name, tensor in updates.weights.items():
                assert torch.equal(rows[f"weights/{name}"][0], tensor[0])
            assert rows["losses"].tolist() == updates.losses[:1].tolist()
        assert strip_prefix(saved[-1], "work0/current/")
        assert "seconds/total" in saved[0]


def test_a_finished_call_of_a_trainer_is_not_repeated():
    """All rows come from the cursor, bit by bit."""
    for kind in (SerialTrainer, NativeTrainer, BatchedTrainer):
        task, saved = small_task(J="J2e", momentum=0.9), []
        cursor = Cursor(write=saved.append)
        cursor.begin_round(())
        trainer, weights = trainer_of(task, kind), task.initial_weights()
        works = trainer.full_work(weights, [3, 0, 1], 1)
        first = trainer.train(works, weights, cursor.next_call())
        cursor.save()
        places: list[None] = []
        again = Cursor(saved[0], is_due=lambda places=places: places.append(None) or False)
        again.begin_round(())
        second = trainer.train(works, weights, again.next_call())
        assert not places
        assert fingerprint(second.weights) == fingerprint(first.weights)
        assert torch.equal(second.losses, first.losses) and torch.equal(second.steps, first.steps)


def test_a_cursor_ends_with_its_round():
    """Saved work belongs to one round: the next one trains all clients again."""
    task = small_task(rounds=2, J="J2e")
    trainer, weights, saved = trainer_of(task), task.initial_weights(), []
    cursor = Cursor(write=saved.append)
    cursor.begin_round(())
    works = trainer.full_work(weights, [0, 1], 1)
    trainer.train(works, weights, cursor.next_call())
    cursor.save()
    cursor = Cursor(saved[0])
    cursor.begin_round(())
    cursor.end_round()
    cursor.begin_round(())
    second = trainer.train(trainer.full_work(weights, [0, 1], 2), weights, cursor.next_call())
    expected = train_clients(trainer_of(task), weights, [0, 1], 2)
    assert fingerprint(second.weights) == fingerprint(expected.weights)
