"""Wilcoxon's test and the sign test against all signs, and against scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from cohort.results.intervals import SignedRanks


def brute(values: np.ndarray) -> float:
    """The share of all signs that give the positive ranks at least the sum that they have."""
    values = values[values != 0]
    ranks = stats.rankdata(np.abs(values))
    seen = ranks[values > 0].sum()
    sums = [ranks @ signs for signs in itertools.product((0, 1), repeat=len(values))]
    return float(np.mean(np.array(sums) >= seen - 1e-9))


@pytest.mark.parametrize("seed", range(6))
def test_p_values_with_ties_and_zeros(seed: int) -> None:
    values = np.random.default_rng(seed).integers(-3, 6, size=9).astype(float)
    sample = SignedRanks.of(values)
    for side, numbers in ((sample, values), (-sample, -values)):
        signs = stats.binomtest(int((numbers > 0).sum()), len(numbers), alternative="greater")
        assert side.p_above() == pytest.approx(max(brute(numbers), signs.pvalue))


@pytest.mark.parametrize("level", [0.02, 0.1, 0.1 / 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_has_the_centers_that_are_not_rejected(seed: int, level: float) -> None:
    values = np.random.default_rng(seed).normal(1, 1, size=8)
    low, high = SignedRanks.of(values).interval(level)
    for center, is_inside in (
        (low - 1e-6, False), (low + 1e-6, True), (high - 1e-6, True), (high + 1e-6, False)
    ):  # fmt: skip
        sides = SignedRanks.of(values - center).p_above(), SignedRanks.of(center - values).p_above()
        assert (min(sides) > level / 2) == is_inside


def test_how_few_settings_say_anything() -> None:
    """Of five differences above 0 the p-value is 1 / 32, of four 1 / 16."""
    assert SignedRanks.of([1, 2, 3, 4, 5]).p_above() == 1 / 32
    assert SignedRanks.of([1, 2, 3, 4]).p_above() == 1 / 16
    assert SignedRanks.of([1, 2, 3, 4]).interval(0.1) == (-np.inf, np.inf)
    assert SignedRanks.of([0, 0, 0]).p_above() == 1
