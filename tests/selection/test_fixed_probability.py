"""FPS-x: how often overlapping and regular clients take part."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cohort.selection.selector import View
from cohort.selection.simple import FixedProbability

CLIENTS, ROUNDS = 20, 6000
OVERLAPPING = (3, 11)


def view_of(overlapping: tuple[int, ...], cohort: int) -> View:
    overlap = np.isin(np.arange(CLIENTS), overlapping).astype(float)
    return View(
        clients=CLIENTS, cohort=cohort, sizes=np.ones(CLIENTS), reports={"overlap": overlap}
    )


def counts(probability: float, overlapping: tuple[int, ...], cohort: int = 4) -> np.ndarray:
    """Count in how many of 6,000 rounds each client takes part."""
    selector, view = FixedProbability(probability=probability), view_of(overlapping, cohort)
    rng, rounds_of_client = np.random.default_rng(1), np.zeros(CLIENTS, dtype=int)
    for _ in range(ROUNDS):
        chosen = selector.select({}, np.arange(CLIENTS), view, rng)
        assert len(set(chosen)) == len(chosen) == cohort
        rounds_of_client[chosen] += 1
    return rounds_of_client


def p_value(observed: np.ndarray, expected: np.ndarray) -> float:
    """P-value of a chi-square test that clients are chosen as often as expected, corrected for the
    fixed size of the cohort, which makes counts dependent."""
    chances = expected / ROUNDS
    squares = (observed - expected) ** 2 / (expected * (1 - chances))
    return float(stats.chi2.sf(squares.sum() * (1 - 1 / len(observed)), len(observed) - 1))


@pytest.mark.parametrize("probability", [0.3, 0.8])
def test_overlapping_clients_join_with_their_probability(probability: float):
    actual = counts(probability, OVERLAPPING)
    expected = np.full(CLIENTS, ROUNDS * (4 - 2 * probability) / 18)
    expected[list(OVERLAPPING)] = ROUNDS * probability
    for client in OVERLAPPING:
        assert stats.binomtest(actual[client], ROUNDS, probability).pvalue > 0.001
    assert p_value(actual, expected) > 0.001
    assert p_value(actual, np.full(CLIENTS, ROUNDS / 5)) < 1e-9  # the test would see a uniform draw


def test_at_the_share_of_the_cohort_it_is_uniform_in_the_mean():
    """A probability of 0.2 with four of twenty clients: each takes part in a fifth of the rounds."""
    assert p_value(counts(0.2, OVERLAPPING), np.full(CLIENTS, ROUNDS / 5)) > 0.001


@pytest.mark.parametrize(("probability", "expected"), [(0.0, 0), (1.0, ROUNDS)])
def test_the_extremes_are_exact(probability: float, expected: int):
    actual = counts(probability, OVERLAPPING)
    assert actual[list(OVERLAPPING)].tolist() == [expected] * 2
    regular = np.delete(actual, OVERLAPPING)
    assert p_value(regular, np.full(18, (4 * ROUNDS - 2 * expected) / 18)) > 0.001


@pytest.mark.parametrize("probability", [0.0, 0.2, 1.0])
def test_without_overlapping_clients_it_is_uniform(probability: float):
    assert p_value(counts(probability, ()), np.full(CLIENTS, ROUNDS / 5)) > 0.001


def test_of_too_many_as_many_join_as_there_are_places():
    overlapping = (0, 1, 2, 3, 4, 5)
    result = counts(1.0, overlapping)
    assert result[6:].sum() == 0
    assert p_value(result[:6], np.full(6, ROUNDS * 4 / 6)) > 0.001


def test_with_too_few_regular_clients_the_cohort_is_smaller():
    view = view_of(tuple(range(17)), 4)
    chosen = FixedProbability(probability=0).select(
        {}, np.arange(CLIENTS), view, np.random.default_rng(0)
    )
    assert sorted(chosen) == [17, 18, 19]


def test_a_cohort_is_never_empty():
    """Nobody joins, and there is no regular client."""
    view = view_of(tuple(range(CLIENTS)), 4)
    arguments = {}, np.arange(CLIENTS), view, np.random.default_rng(0)
    assert len(FixedProbability(probability=0).select(*arguments)) == 1
