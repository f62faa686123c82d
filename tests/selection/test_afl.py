"""Active federated learning, against its pseudo code."""

import math

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from cohort.selection import simple
from cohort.selection.selector import View
from cohort.selection.simple import Afl


def view_of(sizes: np.ndarray, cohort: int) -> View:
    return View(clients=len(sizes), cohort=cohort, sizes=sizes)


def one_by_one(weights: list[float], count: int, rng: Generator) -> list[int]:
    """Draw positions without replacement, each with a probability proportional to its weight."""
    drawn: list[int] = []
    while len(drawn) < count:
        rest = [position for position in range(len(weights)) if position not in drawn]
        threshold = rng.random() * sum(weights[position] for position in rest)
        for position in rest:
            threshold -= weights[position]
            if threshold < 0:
                break
        drawn.append(position)
    return drawn


def algorithm_1(values: dict[int, float], alphas: tuple, m: int, rng: Generator) -> list[int]:
    """Leave out the lowest values, draw by the others, then uniformly from everybody else."""
    alpha1, alpha2, alpha3 = alphas
    ascending = sorted(values, key=lambda client: values[client])
    left_out = int(alpha1 * len(values))
    weights = [math.exp(alpha2 * values[client]) for client in ascending[left_out:]]
    count = min(int((1 - alpha3) * m), len(weights))
    by_value = [ascending[left_out + row] for row in one_by_one(weights, count, rng)]
    rest = [client for client in values if client not in by_value]
    return [*by_value, *rng.choice(rest, m - count, replace=False).tolist()]


@pytest.mark.parametrize("seed", range(300))
def test_cohorts_are_those_of_the_algorithm(seed: int, monkeypatch: pytest.MonkeyPatch):
    """With draws one after another in place of the perturbed weights; some clients are absent, and
    some have no value yet, which counts as the highest."""

    def draw(log_weights: np.ndarray, count: int, rng: Generator) -> np.ndarray:
        return np.array(one_by_one(np.exp(log_weights).tolist(), count, rng), dtype=int)

    monkeypatch.setattr(simple, "draw_without_replacement", draw)
    rng = default_rng(seed)
    sizes, losses = rng.integers(1, 400, 16), rng.random(16) * 3
    m, there = int(rng.integers(1, 6)), rng.permutation(16)[: int(rng.integers(6, 17))]
    losses[rng.permutation(16)[: int(rng.integers(12))]] = np.inf
    alphas = tuple(rng.choice([[0.75, 0.01, 0.1], [0.5, 0.2, 0.5], [0, 0, 0], [1, 1, 1]]))
    selector = Afl(alpha1=alphas[0], alpha2=alphas[1], alpha3=alphas[2])
    cohort = selector.select({"loss": losses}, there, view_of(sizes, m), default_rng(seed))
    values = {int(k): math.sqrt(sizes[k]) * float(losses[k]) for k in there}
    highest = max((value for value in values.values() if value < math.inf), default=0.0)
    values, rng = {k: min(value, highest) for k, value in values.items()}, default_rng(seed)
    values = {client: values[client] for client in rng.permutation(there).tolist()}
    assert cohort.tolist() == algorithm_1(values, alphas, m, rng)


def test_who_does_not_answer_keeps_its_value():
    selector, view = Afl(), view_of(np.ones(3), 2)
    state = selector.begin(view, default_rng(0))
    state = selector.observe(state, np.array([2, 0]), {"received_loss": np.array([0.5, 2])}, view)
    reports = {"received_loss": np.array([np.nan, 1.5])}
    state = selector.observe(state, np.array([2, 0]), reports, view)
    assert state["loss"].tolist() == [1.5, math.inf, 0.5]
