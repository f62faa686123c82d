"""Clients without samples, as `dirplain-ALPHA-minimum0` deals them: they change nothing, and many
selectors leave them out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from cohort.selection import SELECTORS, Selector
from cohort.selection.selector import Reports, Rng, State, View
from cohort.training.servers import Merged, ServerRule
from cohort.training.trainers.serial import SerialTrainer
from cohort.training.updates import Updates, Weights
from tests.training.small_task import small_task, states, train

SIZES = (4, 0, 9, 0, 6)
LEAVING_OUT = ["cpow-d", "divfl", "hics-fl", "loss", "oort", "oort-fedscale", "peco", "pow-d"]
LEAVING_OUT += ["rpow-d", "training-loss", "afl", "fedcs"]
NEVER_DRAWN = ["by-size", "clustered-sizes", "clustered-updates", "optimal-sampling", "kl"]
NEVER_DRAWN += ["tifl"]
SMALLER = ["oort-fedscale", "by-size", "clustered-sizes", "clustered-updates", "tifl"]


@dataclass(frozen=True, kw_only=True)
class PlannedCohorts(Selector):
    """Chooses the cohorts that it is given, round by round."""

    name: ClassVar[str] = "planned"
    cohorts: tuple[tuple[int, ...], ...]

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"round": np.zeros(1, dtype=np.int64)}

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        return np.array(self.cohorts[int(state["round"][0])])

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        return {"round": state["round"] + 1}


@dataclass(frozen=True, kw_only=True)
class PerStep(ServerRule):
    """Divides each client's weights by its steps, which is not finite without steps."""

    name: ClassVar[str] = "per-step"

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        return {"calls": torch.zeros(1)}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        weights = updates.weighted_sum(1 / updates.steps.double())
        return Merged(weights, {"calls": memory["calls"] + 1}, {})


@pytest.mark.parametrize("J", ["J1", "J3", "J2e"])
@pytest.mark.parametrize("augmentation", ["none", "flip"])
def test_an_empty_client_returns_the_global_model(J: str, augmentation: str):
    task = small_task(sizes=SIZES, J=J, augmentation=augmentation)
    start = task.initial_weights()
    updates = train(SerialTrainer(task), start, [1, 2])
    assert all(torch.equal(updates.client_weights(0)[name], start[name]) for name in start)
    assert any(not torch.equal(updates.client_weights(1)[name], start[name]) for name in start)
    assert updates.sizes.tolist() == [0, 9] and updates.steps[0] == 0 and updates.steps[1] > 0
    assert updates.losses.isnan().tolist() == [True, False]


def test_a_cohort_of_empty_clients_changes_neither_model_nor_server_memory():
    planned = PlannedCohorts(cohorts=((0, 2), (3, 1), (4, 3)))
    task = small_task(sizes=SIZES, selector=planned, server=PerStep(), rounds=3)
    first, second, third = states(task)
    assert all(torch.equal(second.weights[name], first.weights[name]) for name in first.weights)
    assert any(not torch.equal(third.weights[name], first.weights[name]) for name in first.weights)
    assert [float(state.server["calls"]) for state in (first, second, third)] == [1, 1, 2]
    assert not any(state.diverged for state in (first, second, third))


@pytest.mark.parametrize("name", SELECTORS)
def test_every_selector_copes_with_empty_clients(name: str):
    """Cohorts are two distinct clients of five, or fewer if they are FedScale's, if clients may be
    drawn twice, or if they are a tier. Within thirty rounds everybody is chosen, empty or not,
    unless the selector goes by labels or leaves out empty clients; KL always chooses the same
    clients with samples."""
    task = small_task(sizes=SIZES, selector=SELECTORS[name](), cohort=2, rounds=30)
    *_, state = states(task)
    sizes = {len(set(cohort.tolist())) for cohort in state.history.cohorts}
    assert sizes <= {1, 2} if name in SMALLER else sizes == {2}
    assert all(bool(tensor.isfinite().all()) for tensor in state.weights.values())
    assert np.isfinite([value for _, value in state.history.metrics["cohort_entropy"]]).all()
    chosen = set(np.concatenate(state.history.cohorts).tolist())
    if name in [*LEAVING_OUT, *NEVER_DRAWN]:
        assert chosen <= set(np.flatnonzero(task.sizes))
    else:
        assert name == "diversity" or chosen == set(range(5))


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_empty_clients_complete_a_cohort_that_is_too_small_without_them(name: str):
    """The only client with samples is in every cohort; FedScale's cohorts stay smaller."""
    task = small_task(sizes=(0, 7, 0, 0), selector=SELECTORS[name](), cohort=2, rounds=10)
    *_, state = states(task)
    size = 1 if name == "oort-fedscale" else 2
    assert all(1 in cohort and len(cohort) == size for cohort in state.history.cohorts)
