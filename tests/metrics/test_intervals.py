"""Paired differences against a textbook's quantiles of Student's t."""

from __future__ import annotations

import math

import pytest

from cohort.metrics.intervals import Sample, paired


def test_the_interval_of_three_values():
    """t of 0.975 with two degrees of freedom is 4.3027; the deviation of 1, 2, 3 is 1."""
    found = Sample.of([1.0, 2.0, 3.0])
    low, high = found.interval()
    assert (found.mean, found.n) == (2, 3)
    assert high - 2 == 2 - low == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)


def test_only_seeds_that_both_have_are_compared():
    found = paired({"0": 5.0, "1": 7.0, "2": 1.0}, {"1": 4.0, "0": 4.0, "3": 0.0})
    assert (found.mean, found.n) == (2, 2)


@pytest.mark.parametrize(
    ("low", "high", "better", "word"),
    [
        (1, 3, "high", "better"),
        (1, 3, "low", "worse"),
        (-3, -1, "high", "worse"),
        (-3, -1, "low", "better"),
        (-1, 3, "high", "undecided"),
        (1, 3, "", "undecided"),
    ],
)
def test_a_word_needs_an_interval_without_zero(low: float, high: float, better: str, word: str):
    sd = (high - low) / 2 * math.sqrt(3) / 4.30265
    assert Sample(3, (low + high) / 2, sd * 0.999).word(better) == word  # type: ignore[arg-type]


def test_one_seed_decides_nothing():
    assert Sample.of([5.0]).word("high") == "undecided"
    assert Sample.of([]).word("high") == "undecided"
