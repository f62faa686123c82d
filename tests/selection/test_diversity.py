"""The diversity score against scipy, and how often clients are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import chisquare, entropy

from cohort.selection.updates import Diversity
from tests.selection.views import labeled

COUNTS = np.array(
    [[10, 0, 0, 0], [5, 5, 0, 0], [1, 2, 3, 4], [0, 0, 9, 1], [4, 4, 4, 4], [0, 0, 0, 7]]
)
RANDOM = np.random.default_rng(3).integers(0, 9, (40, 15)) * (
    np.random.default_rng(4).random((40, 15)) < 0.4
) + np.eye(40, 15, dtype=int)


def own_by_scipy(counts: np.ndarray, mix: float) -> np.ndarray:
    classes = counts.shape[1]
    return np.array(
        [
            mix * np.count_nonzero(row) / classes + (1 - mix) * entropy(row) / np.log(classes)
            for row in counts
        ]
    )


def as_run(counts: np.ndarray, mix: float, alpha: float) -> np.ndarray:
    """Client by client, pair by pair: the mean distance to all clients over the largest mean."""
    apart = [np.mean([jensenshannon(row, other) for other in counts]) for row in counts]
    return alpha * own_by_scipy(counts, mix) + (1 - alpha) * np.array(apart) / max(apart)


def as_written(counts: np.ndarray, mix: float, alpha: float) -> np.ndarray:
    """Client by client, pair by pair: the mean divergence to all other clients."""
    apart = [
        np.mean([jensenshannon(counts[i], counts[j]) ** 2 for j in range(len(counts)) if j != i])
        for i in range(len(counts))
    ]
    return alpha * own_by_scipy(counts, mix) + (1 - alpha) * np.array(apart)


@pytest.mark.parametrize("counts", [COUNTS, RANDOM])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("mix", [0.0, 0.5, 0.9])
def test_scores_are_those_of_scipy(counts: np.ndarray, alpha: float, mix: float):
    for measure, expected in (("distance", as_run), ("divergence", as_written)):
        actual = Diversity(alpha=alpha, mix=mix, measure=measure).scores(counts)
        np.testing.assert_allclose(actual, expected(counts, mix, alpha), rtol=1e-9)


def test_scores_by_hand():
    """Two clients with one class each: their divergence is ln 2. As run, the mean over both is half
    its root, and 1 after division by the maximum. They hold one of two classes with entropy 0: an
    own diversity of 1/4 with a mix of 1/2."""
    counts = np.array([[3, 0], [0, 8]])
    np.testing.assert_allclose(Diversity(alpha=0.2).scores(counts), [0.2 * 0.25 + 0.8] * 2)
    np.testing.assert_allclose(
        Diversity(alpha=0.2, measure="divergence").scores(counts),
        [0.2 * 0.25 + 0.8 * np.log(2)] * 2,
    )


def test_probabilities_by_hand():
    """Divergences: ln 2 = 0.6931 between the first two clients, and from each of them to the third
    H(3/4, 1/4) - (0 + ln 2) / 2 = 0.2158. Means over the others: 0.4545, 0.4545 and 0.2158; own
    diversities: 0.25, 0.25 and 1. At alpha 0.3 the scores are 0.3931, 0.3931 and 0.4510; scaled to
    0.01 ... 1.01 and normalized, 0.01 / 1.03 = 0.0097 and 1.01 / 1.03 = 0.9806."""
    counts = np.array([[1, 0], [0, 1], [1, 1]])
    selector = Diversity(alpha=0.3, mix=0.5, measure="divergence")
    np.testing.assert_allclose(selector.scores(counts), [0.3931, 0.3931, 0.4510], atol=5e-5)
    weights = selector.begin(labeled(counts, 1), np.random.default_rng(0))["weight"]
    np.testing.assert_allclose(weights / weights.sum(), [0.0097, 0.0097, 0.9806], atol=5e-5)


def test_clients_that_are_all_alike_have_no_distance():
    """The authors' code would divide 0 by 0. Evenly holding 3 of 4 classes scores 0.5 * 3/4 + 0.5 *
    ln 3 / ln 4."""
    counts = np.array([[1, 1, 1, 0], [7, 7, 7, 0], [3, 3, 3, 0]])
    np.testing.assert_allclose(Diversity(alpha=0.0).scores(counts), [0, 0, 0])
    np.testing.assert_allclose(
        Diversity(alpha=0.4).scores(counts), [0.4 * (0.375 + 0.5 * np.log(3) / np.log(4))] * 3
    )


def test_chosen_as_often_as_the_scores_say():
    """Cohorts of one: probabilities are proportional to the min-max scaled scores plus 0.01."""
    selector, seen = Diversity(alpha=0.5), np.zeros(6)
    state = selector.begin(labeled(COUNTS, 1), np.random.default_rng(0))
    for seed in range(20_000):
        seen[
            selector.select(state, np.arange(6), labeled(COUNTS, 1), np.random.default_rng(seed))
        ] += 1
    scores = as_run(COUNTS, 0.5, 0.5)
    weights = (scores - scores.min()) / (scores.max() - scores.min()) + 0.01
    assert chisquare(seen, weights / weights.sum() * 20_000).pvalue > 1e-3
    assert chisquare(seen).pvalue < 1e-6  # evenly it is not
