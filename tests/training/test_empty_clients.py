"""Clients without a sample, which `dirplain-ALPHA-minimum0` deals: they take part, and change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
import yaml

from cohort.cell.planned import freeze, plan_file
from cohort.commands.run import run_cell
from cohort.metrics.collect import from_record
from cohort.plan import load
from cohort.records.record import read
from cohort.selection import SELECTORS, Selector
from cohort.selection.selector import Need, State, View
from cohort.training.procedures.federated import Federated
from cohort.training.servers import ServerRule
from cohort.training.servers.average import Average
from cohort.training.servers.server import Merged
from cohort.training.state import RunState
from cohort.training.task import Task
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights
from tests.training.small_task import small_task

SIZES = (4, 0, 9, 0, 6)


@dataclass(frozen=True, kw_only=True)
class Planned(Selector):
    """The cohorts by round."""

    name: ClassVar[str] = "planned"
    cohorts: tuple[tuple[int, ...], ...]

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"round": np.zeros(1, dtype=np.int64)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array(self.cohorts[int(state["round"][0])])

    def observe(
        self, state: State, cohort: np.ndarray, reports: Mapping[Need, np.ndarray], view: View
    ) -> State:
        return {"round": state["round"] + 1}


@dataclass(frozen=True, kw_only=True)
class PerStep(ServerRule):
    """Each client's weights divided by its steps: not a number where there was none."""

    name: ClassVar[str] = "per-step"

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        return Merged(
            updates.mean(1 / updates.steps.double()),
            {"calls": memory.get("calls", torch.zeros(1)) + 1},
            {},
        )


def trainer_of(task: Task) -> SerialTrainer:
    return trainer_of(task)


def run(task: Task) -> list[tuple[Weights, RunState]]:
    return [
        (dict(state.weights), state) for state in Federated().rounds(task, Federated().begin(task))
    ]


@pytest.mark.parametrize("J", ["J1", "J3", "J2e"])
@pytest.mark.parametrize("augmentation", ["none", "flip"])
def test_an_empty_client_sends_back_what_it_was_sent(J: str, augmentation: str):
    task = small_task(sizes=SIZES, J=J, augmentation=augmentation)
    start = task.initial_weights()
    updates = trainer_of(task).train(start, np.array([1, 2]), 1)
    assert all(torch.equal(updates.of_client(0)[name], start[name]) for name in start)
    assert any(not torch.equal(updates.of_client(1)[name], start[name]) for name in start)
    assert updates.sizes.tolist() == [0, 9] and updates.steps[0] == 0 and updates.steps[1] > 0
    assert updates.losses.isnan().tolist() == [True, False]


def test_a_cohort_with_empty_clients_is_the_cohort_without_them():
    task = small_task(sizes=SIZES, selector=Planned(cohorts=((1, 0, 3, 4),)), J="J2")
    start = task.initial_weights()
    ((weights, state),) = run(task)
    updates = trainer_of(task).train(start, np.array([0, 4]), 1)
    expected, _, _ = Average().apply(start, updates, {})
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert state.history.last("train_loss") == pytest.approx(
        float(updates.losses.mean()), abs=1e-15
    )
    assert state.history.cost["client_steps"] == [(1, 4.0)]
    np.testing.assert_array_equal(state.history.cohorts, [[1, 0, 3, 4]])


def test_a_cohort_of_empty_clients_leaves_the_model_and_the_servers_memory_unchanged():
    task = small_task(
        sizes=SIZES, selector=Planned(cohorts=((0, 2), (3, 1), (4, 3))), server=PerStep(), rounds=3
    )
    states = Federated().rounds(task, Federated().begin(task))
    first, second, third = [
        (dict(state.weights), float(state.server["calls"]), state.diverged) for state in states
    ]
    assert all(torch.equal(second[0][name], first[0][name]) for name in first[0])
    assert any(not torch.equal(third[0][name], first[0][name]) for name in first[0])
    assert [calls for _, calls, _ in (first, second, third)] == [1, 1, 2]
    assert not any(diverged for _, _, diverged in (first, second, third))


def test_a_round_without_training_has_no_training_loss():
    task = small_task(sizes=SIZES, selector=Planned(cohorts=((0,), (3,), (2,))), rounds=3)
    *_, (_, state) = run(task)
    assert [round for round, _ in state.history.metrics["train_loss"]] == [1, 3]
    for name, pairs in (state.history.metrics | state.history.cost).items():
        assert np.isfinite([value for _, value in pairs]).all(), name
    assert [round for round, _ in state.history.metrics["test_accuracy"]] == [1, 2, 3]


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_chooses_among_empty_clients_too(name: str):
    """Cohorts of two distinct clients of five; within thirty rounds everyone is chosen, empty or not, unless labels are what counts.
    KL's set is the same in every round, and none of it is empty."""
    task = small_task(sizes=SIZES, selector=SELECTORS[name](), cohort=2, rounds=30)
    *_, (weights, state) = run(task)
    assert all(len(set(cohort.tolist())) == 2 for cohort in state.history.cohorts)
    assert all(bool(tensor.isfinite().all()) for tensor in weights.values())
    assert np.isfinite([value for _, value in state.history.metrics["cohort_entropy"]]).all()
    chosen = set(np.concatenate(state.history.cohorts).tolist())
    assert (
        chosen <= set(np.flatnonzero(task.sizes))
        if name == "kl"
        else name == "diversity" or chosen == set(range(5))
    )


def test_the_record_of_a_run_with_empty_clients(project: Path):
    """30 clients of Dir(0.02): most hold nothing. They have no loss; everything else is there, also when it is collected."""
    settings = {
        "dataset": "digits",
        "model": "small-mlp",
        "clients": 30,
        "cohort": 4,
        "rounds": 6,
        "batch": 16,
        "lr": 0.05,
    }
    axes = {
        "partition": ["dirplain-0.02-minimum0"],
        "J": ["J2"],
        "strategy": ["fedavg"],
        "seed": [0],
    }
    study = {
        "title": "Empty clients",
        "settings": settings,
        "experiments": {"main": {"axes": axes}},
    }
    Path("config/studies/study.yaml").write_text(yaml.safe_dump(study))
    plan = load({"studies": "study"})
    (cell,) = plan.cells.values()
    freeze(cell)
    run_cell(plan, plan_file(cell.digest), None, "cpu")
    record = read(cell.path)
    empty = record.clients["size"] == 0
    assert 5 < empty.sum() < 30 and record.header["status"] == "done"
    assert (np.isnan(record.clients["loss"]) == empty).all() and (
        np.isnan(record.clients["accuracy"]) == empty
    ).all()
    collected = from_record(cell.path).values
    assert (collected.loc[collected["metric"] == "accuracy", "value"].isna() == empty).all()
