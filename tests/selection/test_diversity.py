"""The diversity score against scipy, and how often clients are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import chisquare, entropy

from cohort.selection.diversity import Diversity
from cohort.selection.selector import View

COUNTS = np.array(
    [[10, 0, 0, 0], [5, 5, 0, 0], [1, 2, 3, 4], [0, 0, 9, 1], [4, 4, 4, 4], [0, 0, 0, 7]]
)
RANDOM = np.random.default_rng(3).integers(0, 9, (40, 15)) * (
    np.random.default_rng(4).random((40, 15)) < 0.4
) + np.eye(40, 15, dtype=int)


def view(counts: np.ndarray, cohort: int) -> View:
    return View(clients=len(counts), cohort=cohort, sizes=counts.sum(axis=1), label_counts=counts)


def by_scipy(counts: np.ndarray, mix: float, alpha: float, power: int) -> list[float]:
    """Client by client, pair by pair."""
    classes = counts.shape[1]
    own = [
        mix * np.count_nonzero(row) / classes + (1 - mix) * entropy(row) / np.log(classes)
        for row in counts
    ]
    distance = [
        sum(jensenshannon(row, other) ** power for other in counts) / len(counts) for row in counts
    ]
    return [alpha * a + (1 - alpha) * b / max(distance) for a, b in zip(own, distance, strict=True)]


@pytest.mark.parametrize("counts", [COUNTS, RANDOM])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("mix", [0.0, 0.5, 0.9])
def test_scores_are_those_of_scipy(counts: np.ndarray, alpha: float, mix: float):
    for measure, power in (("distance", 1), ("divergence", 2)):
        found = Diversity(alpha=alpha, mix=mix, measure=measure).scores(counts)
        np.testing.assert_allclose(found, by_scipy(counts, mix, alpha, power), rtol=1e-9)


def test_scores_by_hand():
    """Two clients with one class each: their divergence is ln 2, the mean over both is ln 2 / 2,
    and 1 after division by the maximum. They hold one of two classes with entropy 0: an
    own diversity of 1/4 with a mix of 1/2."""
    counts = np.array([[3, 0], [0, 8]])
    np.testing.assert_allclose(Diversity(alpha=0.2).scores(counts), [0.2 * 0.25 + 0.8] * 2)
    np.testing.assert_allclose(
        Diversity(alpha=0.2, measure="divergence").scores(counts), [0.2 * 0.25 + 0.8] * 2
    )


def test_clients_that_are_all_alike_have_no_distance():
    """As run this is 0/0; 3 of 4 classes, evenly: 0.5 * 3/4 + 0.5 * ln 3 / ln 4."""
    counts = np.array([[1, 1, 1, 0], [7, 7, 7, 0], [3, 3, 3, 0]])
    np.testing.assert_allclose(Diversity(alpha=0.0).scores(counts), [0, 0, 0])
    np.testing.assert_allclose(
        Diversity(alpha=0.4).scores(counts), [0.4 * (0.375 + 0.5 * np.log(3) / np.log(4))] * 3
    )


def test_chosen_as_often_as_the_scores_say():
    """Cohorts of one: probabilities are proportional to the min-max scaled scores plus 0.01."""
    selector, seen = Diversity(alpha=0.5), np.zeros(6)
    state = selector.begin(view(COUNTS, 1), np.random.default_rng(0))
    for seed in range(20_000):
        seen[
            selector.select(state, np.arange(6), view(COUNTS, 1), np.random.default_rng(seed))
        ] += 1
    scores = np.array(by_scipy(COUNTS, 0.5, 0.5, 1))
    weights = (scores - scores.min()) / (scores.max() - scores.min()) + 0.01
    assert chisquare(seen, weights / weights.sum() * 20_000).pvalue > 1e-3
    assert chisquare(seen).pvalue < 1e-6  # evenly it is not


def test_a_cohort_is_distinct_and_of_the_candidates():
    selector = Diversity()
    state = selector.begin(view(RANDOM, 10), np.random.default_rng(0))
    for seed in range(100):
        candidates = np.random.default_rng(seed).choice(40, 12, replace=False)
        cohort = selector.select(state, candidates, view(RANDOM, 10), np.random.default_rng(seed))
        assert len(set(cohort)) == 10
        assert set(cohort) <= set(candidates)
