"""The global model on the held-out samples of a cohort that is drawn after the round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from cohort.selection import Selector
from cohort.selection.peco import Peco
from cohort.selection.selector import Reports, State, View
from cohort.selection.simple import FixedProbability, HighestLoss, HighestTrainingLoss, Random, Ucb
from cohort.training.evaluation import fingerprint
from cohort.training.task import RunState, Task
from tests.training.small_task import run, small_task

HELD_OUT = ((0, 1, 4), (3,), (7, 9), ())


@dataclass(frozen=True, kw_only=True)
class Turns(Selector):
    """Chooses clients 0 and 1, then 1 and 2, then 2 and 3: its memory counts the rounds."""

    name: ClassVar[str] = "turns"

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"round": np.zeros(1, dtype=np.int64)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        first = int(state["round"][0])
        return candidates[[first % 4, (first + 1) % 4]]

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        return {"round": state["round"] + 1}


def task_of(selector: Selector, **settings: Any) -> Task:
    """Four clients of which one holds out nothing."""
    changes = {"rounds": 3, "cohort": 2, "lr": 0.5, "J": "J2", "holdout": 0.1} | settings
    task = small_task(selector=selector, **changes)
    parts = [np.array(part, dtype=np.int64) for part in HELD_OUT]
    return replace(task, shards=replace(task.shards, holdouts=parts, chosen=np.array([1])))


def states(task: Task) -> list[RunState]:
    return list(task.procedure.rounds(task, task.procedure.begin(task)))


def test_by_hand():
    """After round 1 clients 1 and 2 come next, then 2 and 3, then 3 and 0. The mean weighs samples,
    as Flower weighs clients by their numbers of examples."""
    task = task_of(Turns(), evaluate_next=1)
    by_round = states(task)
    metrics = by_round[-1].history.metrics
    accuracies = []
    for state, held_out in zip(by_round, ([3, 7, 9], [7, 9], [0, 1, 4]), strict=True):
        indices = torch.tensor(held_out)
        inputs, labels = task.train_samples.inputs(indices), task.train_samples.labels[indices]
        outputs = functional_call(task.model, state.weights, inputs)
        accuracies.append(float((outputs.argmax(dim=1) == labels).double().mean()))
        index = state.round - 1
        assert metrics["next_cohort_accuracy"][index] == (state.round, accuracies[-1])
        loss = metrics["next_cohort_loss"][index][1]
        assert loss == pytest.approx(float(cross_entropy(outputs, labels)), rel=1e-12)
    assert len(set(accuracies)) > 1


@pytest.mark.parametrize("selector", [Random(), Peco(), HighestLoss(), HighestTrainingLoss(), Ucb(), FixedProbability()],
                         ids=lambda selector: selector.name)  # fmt: skip
def test_the_run_is_the_same_without_it(selector: Selector):
    with_it, without = (
        run(task_of(selector, rounds=5, evaluate_next=plan, evaluate_local=1)) for plan in (1, 0)
    )
    assert fingerprint(with_it.weights) == fingerprint(without.weights)
    for name, array in without.selector.items():
        np.testing.assert_array_equal(with_it.selector[name], array)
    for cohort, other in zip(with_it.history.cohorts, without.history.cohorts, strict=True):
        np.testing.assert_array_equal(cohort, other)
    measured = dict(with_it.history.metrics)
    assert [len(measured.pop(f"next_cohort_{name}")) for name in ("accuracy", "loss")] == [5, 5]
    assert measured == without.history.metrics
