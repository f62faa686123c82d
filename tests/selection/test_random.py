"""Uniform selection."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import chisquare

from cohort.selection.selector import View
from cohort.selection.simple import Random


def cohorts(candidates: np.ndarray, cohort: int, draws: int) -> np.ndarray:
    view = View(clients=20, cohort=cohort, sizes=np.arange(1, 21))
    return np.stack(
        [
            Random().select({}, candidates, view, np.random.default_rng(seed))
            for seed in range(draws)
        ]
    )


def test_every_subset_is_equally_likely():
    """Two of six candidates: 15 subsets, 3,000 draws. Sizes differ and must not matter."""
    candidates = np.array([0, 3, 4, 9, 11, 19])
    subsets = list(combinations(candidates.tolist(), 2))
    drawn = [tuple(sorted(cohort)) for cohort in cohorts(candidates, 2, 3000).tolist()]
    assert chisquare([drawn.count(subset) for subset in subsets]).pvalue > 1e-3
    assert len(drawn) == sum(drawn.count(subset) for subset in subsets)


def test_every_place_of_the_cohort_is_uniform():
    drawn = cohorts(np.arange(20), 5, 3000)
    for index in range(5):
        assert chisquare(np.bincount(drawn[:, index], minlength=20)).pvalue > 1e-3
