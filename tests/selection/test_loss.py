"""Highest loss first."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from cohort.selection.simple import HighestLoss, HighestTrainingLoss
from tests.selection.views import alike

SELECTOR = HighestLoss()


def select(
    losses: list[float], cohort: int, seed: int, candidates: list[int] | None = None
) -> list[int]:
    pool = np.arange(len(losses)) if candidates is None else np.array(candidates)
    return SELECTOR.select(
        {"loss": np.array(losses)}, pool, alike(len(losses), cohort), np.random.default_rng(seed)
    ).tolist()


@pytest.mark.parametrize("seed", range(50))
def test_equals_a_sort_by_hand_where_all_losses_differ(seed: int):
    rng = np.random.default_rng(seed)
    losses = rng.permutation(np.arange(12) / 7 + 0.1).tolist()
    candidates = rng.choice(12, 8, replace=False).tolist()
    expected = sorted(candidates, key=lambda client: -losses[client])[:5]
    assert select(losses, 5, seed, candidates) == expected


@pytest.mark.parametrize("seed", range(50))
def test_never_measured_come_first_then_the_highest(seed: int):
    losses = [1.0, np.inf, 3.0, 2.0, np.inf, 9.0]
    chosen = select(losses, 4, seed)
    assert set(chosen[:2]) == {1, 4}
    assert chosen[2:] == [5, 2]


@pytest.mark.parametrize("tied", [np.inf, 2.5])
def test_ties_are_broken_evenly(tied: float):
    """Client 1 leads, six clients are tied for two places: in 3,000 draws each takes 1,000 of the
    6,000 places."""
    losses = [tied, np.inf if tied < np.inf else tied, tied, tied, 0.1, tied, tied, tied, 0.2]
    equal = [client for client in range(9) if losses[client] == tied]
    lead = 0 if tied == np.inf else 1
    chosen = [select(losses, 2 + lead, seed) for seed in range(3000)]
    counts = np.bincount(np.concatenate(chosen), minlength=9)
    assert lead == 0 or counts[1] == 3000
    assert counts[equal].sum() == 6000
    assert chisquare(counts[equal]).pvalue > 1e-3


@pytest.mark.parametrize("seed", range(10))
def test_a_run_equals_a_dictionary_kept_by_hand(seed: int):
    """Twelve rounds of 3 of 10 clients: the cohort is what sorting the last-known losses gives."""
    rng = np.random.default_rng(seed)
    state, last = SELECTOR.begin(alike(10, 3), np.random.default_rng(0)), {}
    for round in range(12):
        cohort = SELECTOR.select(
            state, np.arange(10), alike(10, 3), np.random.default_rng([seed, round])
        ).tolist()
        unmeasured = [client for client in range(10) if client not in last]
        if len(unmeasured) >= 3:
            assert set(cohort) <= set(unmeasured)
        else:
            ranked = sorted(last, key=lambda client: -last[client])
            assert set(cohort) == set(unmeasured) | set(ranked[: 3 - len(unmeasured)])
        losses = rng.random(3)
        last |= dict(zip(cohort, losses, strict=True))
        state = SELECTOR.observe(state, np.array(cohort), {"reserved_loss": losses}, alike(10, 3))


def test_on_the_training_loss():
    """The selector remembers the losses of clients' own steps and ranks by them."""
    selector = HighestTrainingLoss()
    state = selector.begin(alike(4, 2), np.random.default_rng(0))
    reports = {"training_loss": np.array([0.5, 2.0, 1.0, np.nan])}
    state = selector.observe(state, np.array([3, 0, 2, 1]), reports, alike(4, 2))
    assert state["loss"].tolist() == [2.0, np.inf, 1.0, 0.5]
    chosen = selector.select(state, np.arange(4), alike(4, 2), np.random.default_rng(1))
    assert chosen.tolist() == [1, 0]
