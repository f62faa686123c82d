"""Fed-CBS against the paper's formulas, written out with loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cohort.selection.entropy import PERFECT, FedCbs, imbalance
from tests.selection.views import labeled

COUNTS = np.array([[6, 0, 0], [0, 5, 1], [2, 2, 2], [0, 0, 9], [1, 4, 0]])


def qcid(members: list[int], counts: np.ndarray) -> float:
    """The imbalance of a group of clients, by the products of their label shares."""
    total = float(counts[members].sum())
    products = sum(float(counts[n] @ counts[m]) for n in members for m in members)
    return products / total**2 - 1 / counts.shape[1]


def literal(counts: np.ndarray, cohort: int, round: int, chosen: list[int], strength: float, rng):
    """The paper's draws of a cohort, one client after another."""
    members: list[int] = []
    for m in range(1, cohort + 1):
        rest = [client for client in range(len(counts)) if client not in members]
        weights = []
        for client in rest:
            weight = (qcid([*members, client], counts) + PERFECT) ** -m
            if m == 1:
                weight += strength * math.sqrt(3 * math.log(round) / (2 * chosen[client]))
            weights.append(math.log(weight))
        noise = rng.gumbel(size=len(rest))
        best = max(range(len(rest)), key=lambda index: weights[index] + noise[index])
        members.append(rest[best])
    return members


def test_imbalance_by_hand():
    """Shares of 1, 0, 0 differ by 4/9 + 1/9 + 1/9; equal ones by nothing; none as the worst."""
    counts = np.array([[6.0, 0, 0], [2, 2, 2], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(imbalance(counts), [6 / 9, 0, 1 / 6, 6 / 9], atol=1e-15)
    for client in range(5):
        assert imbalance(COUNTS[[client]].astype(float))[0] == pytest.approx(qcid([client], COUNTS))


@pytest.mark.parametrize("strength", [0, 10])
def test_it_is_the_papers_sampling(strength: float):
    """It chooses the cohorts of `literal`, in 100 rounds of random label counts."""
    data = np.random.default_rng(0)
    for trial in range(5):
        counts = data.integers(0, 9, size=(8, 4)) + np.eye(8, 4, dtype=int)
        selector, chosen = FedCbs(exploration=strength), [1] * 8
        state = selector.begin(labeled(counts, 3), data)
        for round in range(1, 21):
            draws = np.random.default_rng([trial, round]), np.random.default_rng([trial, round])
            cohort = selector.select(state, np.arange(8), labeled(counts, 3), draws[0])
            assert cohort.tolist() == literal(counts, 3, round, chosen, strength, draws[1])
            for client in cohort:
                chosen[client] += 1
            state = selector.observe(state, cohort, {}, labeled(counts, 3))


def test_cohorts_are_more_balanced_than_random_ones():
    counts = np.repeat(20 * np.eye(10, dtype=int), 4, axis=0)  # four clients of each class
    selector, rng = FedCbs(), np.random.default_rng(0)
    state, ours, random = selector.begin(labeled(counts, 10), rng), [], []
    for _ in range(60):
        cohort = selector.select(state, np.arange(40), labeled(counts, 10), rng)
        ours.append(qcid(cohort.tolist(), counts))
        random.append(qcid(rng.choice(40, 10, replace=False).tolist(), counts))
        state = selector.observe(state, cohort, {}, labeled(counts, 10))
    assert np.mean(ours) < np.mean(random) / 4
    assert len(np.unique(state["count"])) > 1 and state["count"].min() > 1  # nobody is left out
