"""Skewed participation against the Dirichlet distribution of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp

from cohort.selection.simple import Skewed
from tests.selection.views import alike


def counts(selector: Skewed, clients: int, cohort: int, rounds: int, seed: int = 0) -> np.ndarray:
    """How often each client is chosen."""
    seen, state = (
        np.zeros(clients),
        selector.begin(alike(clients, cohort), np.random.default_rng(seed)),
    )
    for round in range(rounds):
        seen[
            selector.select(
                state,
                np.arange(clients),
                alike(clients, cohort),
                np.random.default_rng([seed, round]),
            )
        ] += 1
    return seen


@pytest.mark.parametrize("gamma", [0.5, 1.0, 10.0])
def test_probabilities_are_dirichlet_shares(gamma: float):
    """The largest of five shares, and the first, are distributed as numpy's."""
    rng = np.random.default_rng(1)
    logs = np.array([Skewed(gamma=gamma).log_weights(5, rng) for _ in range(4000)])
    ours = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    theirs = np.random.default_rng(2).dirichlet(np.full(5, gamma), 4000)
    assert ks_2samp(ours[:, 0], theirs[:, 0]).pvalue > 1e-3
    assert ks_2samp(ours.max(axis=1), theirs.max(axis=1)).pvalue > 1e-3


def test_a_cohort_is_a_draw_without_replacement():
    """With weights 4, 2, 1, 1 the ordered pair (a, b) has the probability p_a p_b / (1 - p_a)."""
    weights, seen = np.array([4, 2, 1, 1]) / 8, np.zeros((4, 4))
    selector, state = Skewed(gamma=1.0, redraw=False), {"log_weight": np.log(weights)}
    for seed in range(20_000):
        first, second = selector.select(
            state, np.arange(4), alike(4, 2), np.random.default_rng(seed)
        )
        seen[first, second] += 1
    expected = weights[:, None] * weights / (1 - weights[:, None])
    off = ~np.eye(4, dtype=bool)
    assert seen[~off].sum() == 0
    assert chisquare(seen[off], expected[off] * 20_000).pvalue > 1e-3


def test_drawn_anew_everybody_is_chosen_equally_often():
    seen = counts(Skewed(gamma=0.01), 20, 4, 5000)
    assert seen.sum() == 20_000
    assert chisquare(seen).pvalue > 1e-3


def test_drawn_once_few_clients_are_chosen_again_and_again():
    skewed, even = (
        np.sort(counts(Skewed(gamma=gamma, redraw=False), 20, 4, 500))[::-1]
        for gamma in (0.01, 1000.0)
    )
    assert skewed[:4].tolist() == [500] * 4
    assert chisquare(even).pvalue > 1e-3
