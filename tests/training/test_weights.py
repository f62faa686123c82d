"""Selectors that weigh updates and draw clients more than once, by enumeration of all draws."""

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch.nn import BatchNorm1d, Flatten, Linear

from cohort.core.errors import UserError
from cohort.selection.selector import Rng, Selector, State, UpdateWeighing, View
from cohort.training.servers import Average, FedNova, Momentum, Scaffold, ServerRule
from cohort.training.task import RunState
from cohort.training.updates import Updates, Weights
from tests.training.small_task import SIZES, run, seeded, small_task, states

SHARES = np.array(SIZES) / sum(SIZES)
RULES: list[ServerRule] = [Average(), Momentum(beta=0.5), Scaffold(), FedNova()]


@dataclass(frozen=True, kw_only=True)
class Scripted(Selector, UpdateWeighing):
    """Draws these clients, and gives their updates these weights."""

    name: ClassVar[str] = "scripted"
    drawn: tuple[int, ...]
    update_weights: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        return np.array(self.drawn)

    def weights(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> np.ndarray:
        return self.update_weights


def weights_after(selector: Selector | None, rule: ServerRule) -> Weights:
    return run(small_task(selector=selector, server=rule, J="J2")).weights


def assert_expectation(chances: list[float], outcomes: list[Weights], rule: ServerRule) -> None:
    """The mean of the outcomes is the model after a round of all clients, averaged by size."""
    assert sum(chances) == pytest.approx(1)
    for name, everybody in weights_after(None, rule).items():
        parts = zip(chances, outcomes, strict=True)
        mean = sum(chance * weights[name] for chance, weights in parts)
        torch.testing.assert_close(mean, everybody, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_sampling_by_size_with_replacement_is_fedavg_in_expectation(rule: ServerRule):
    """Two draws of four clients, each in proportion to its samples, with weights of a half."""
    draws = list(itertools.product(range(4), repeat=2))
    selectors = [Scripted(drawn=drawn, update_weights=np.full(2, 0.5)) for drawn in draws]
    chances = [float(SHARES[list(drawn)].prod()) for drawn in draws]
    assert_expectation(chances, [weights_after(own, rule) for own in selectors], rule)


@pytest.mark.parametrize("rule", RULES[:3], ids=lambda rule: rule.name)
def test_inverse_probabilities_are_fedavg_in_expectation(rule: ServerRule):
    """Each client takes part by a chance of its own, and its share is divided by that: the weights
    of a round do not add up to 1."""
    odds, chances = np.array([0.3, 0.9, 0.2, 0.6]), []
    outcomes = [small_task().initial_weights()]
    for taken in map(np.array, itertools.product([False, True], repeat=4)):
        chances.append(float(np.where(taken, odds, 1 - odds).prod()))
        if taken.any():
            drawn, weights = tuple(np.flatnonzero(taken).tolist()), (SHARES / odds)[taken]
            outcomes.append(weights_after(Scripted(drawn=drawn, update_weights=weights), rule))
    assert_expectation(chances, outcomes, rule)


def test_a_client_drawn_twice_trains_once_and_counts_twice():
    twice = Scripted(drawn=(2, 1, 2), update_weights=np.array([0.25, 0.5, 0.25]))
    once = Scripted(drawn=(1, 2), update_weights=np.array([0.5, 0.5]))
    first, second = (run(small_task(selector=own, cohort=3)) for own in (twice, once))
    for name, tensor in first.weights.items():
        torch.testing.assert_close(tensor, second.weights[name], rtol=1e-14, atol=1e-15)
    history = first.history
    assert history.cohorts[0].tolist() == [2, 1] and history.cost["client_steps"] == [(1, 2)]
    assert history.metrics["total_weight"] == [(1, 1.0)]


def test_only_those_who_answer_count_with_their_weights():
    """By hand: two of four drop out; the others' updates are added with their weights."""
    weights = np.array([0.1, 0.2, 0.3, 0.7])
    dropping = small_task(
        selector=Scripted(drawn=(0, 1, 2, 3), update_weights=weights), participation="dropout-0.5"
    )
    state = run(dropping)
    here = state.history.responders[0]
    alone = Scripted(drawn=tuple(here.tolist()), update_weights=weights[here])
    assert len(here) == 2
    for name, tensor in run(small_task(selector=alone)).weights.items():
        assert torch.equal(state.weights[name], tensor)


def test_statistics_of_normalization_are_averaged_by_the_weights():
    """Running means are the mean with weights of 1/4 and 3/4, though the weights add up to 4."""
    weights = np.array([1.0, 3.0])

    def after(*clients: int, weights: np.ndarray) -> RunState:
        layers = Flatten, lambda: BatchNorm1d(64), lambda: Linear(64, 3)
        selector = Scripted(drawn=clients, update_weights=weights)
        return run(small_task(model=seeded(0, *layers), selector=selector))

    alone = [after(client, weights=np.ones(1)) for client in (0, 1)]
    together = after(0, 1, weights=weights)
    means = [state.weights["1.running_mean"] for state in (*alone, together)]
    torch.testing.assert_close(means[2], 0.25 * means[0] + 0.75 * means[1])


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(3), "not a number above 0 for each of 2 draws"),
        (np.array([1.0, 0.0]), "not a number above 0"),
        (np.array([1.0, np.nan]), "not a number above 0"),
    ],
)
def test_weights_that_cannot_be_used(weights: np.ndarray, sentence: str):
    with pytest.raises(UserError, match=f"round 1: weights returned .*{sentence}"):
        states(small_task(selector=Scripted(drawn=(0, 0), update_weights=weights)))


def test_a_mean_is_in_full_precision_where_steps_are_not():
    rows = torch.tensor([[1.0], [1.001], [1.002]])
    updates = Updates({"w": rows}, torch.ones(3), torch.ones(3), torch.zeros(3))
    with torch.autocast("cpu", torch.bfloat16):
        mean = updates.weighted_sum(torch.full((3,), 1 / 3))["w"]
    torch.testing.assert_close(mean, torch.tensor([1.001]))
