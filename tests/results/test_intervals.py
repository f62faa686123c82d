"""Paired differences against a textbook's quantiles of Student's t."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from cohort.results.intervals import Sample, paired_differences


def test_the_interval_of_three_values():
    """t of 0.975 with two degrees of freedom is 4.3027; the deviation of 1, 2, 3 is 1."""
    result = Sample.of([1.0, 2.0, 3.0])
    low, high = result.interval()
    assert (result.mean, result.n) == (2, 3)
    assert high - 2 == 2 - low == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)


def test_only_seeds_that_both_have_are_compared():
    result = paired_differences({"0": 5.0, "1": 7.0, "2": 1.0}, {"1": 4.0, "0": 4.0, "3": 0.0})
    assert (result.mean, result.n) == (2, 2)


@pytest.mark.parametrize(
    ("values", "better", "word"),
    [
        ((1, 2, 1.5, 1.2, 1.1), "high", "better"),
        ((1, 2, 1.5, 1.2, 1.1), "low", "worse"),
        ((-1, -2, -1.5, -1.2, -1.1), "low", "better"),
        ((1, 2, 1.5, 1.2, -0.1), "high", "undecided"),  # t = 3.3, but 4 of 5 seeds only
        ((1, 9, 1, 1, 30), "high", "undecided"),  # 5 of 5 seeds, but t = 1.5
        ((1, 2, 1.5, 1.2, 1.1), "", "undecided"),
        ((1, 2, 1.5), "high", "leans better"),
        ((1, 2, 1.5), "low", "leans worse"),
        ((1, 2), "high", "not enough runs"),
        ((), "high", "not enough runs"),
    ],
)
def test_a_word_needs_the_interval_and_the_signs(
    values: tuple[float, ...], better: str, word: str
) -> None:
    assert Sample.of(values).verdict(better) == word  # type: ignore[arg-type]


@pytest.mark.parametrize("n", range(5, 21))
def test_the_sign_test_is_scipys(n: int) -> None:
    """A deviation so small that the t-test is never the stricter one."""
    for above in range(n + 1):
        p_value = stats.binomtest(above, n, alternative="greater").pvalue
        sample = Sample(n, 1.0, 1e-6, above, n - above)
        assert sample.p_above() == pytest.approx(p_value)


def test_how_many_signs_are_enough() -> None:
    """5 of 5, 6 of 6, 7 of 7, 7 of 8, 8 of 9 and 9 of 10: 6 of 7 has p = 8 / 128."""
    fewest = {
        n: min(k for k in range(n + 1) if Sample(n, 1.0, 1e-6, k, n - k).p_above() <= 0.05)
        for n in range(5, 11)
    }
    assert fewest == {5: 5, 6: 6, 7: 7, 8: 7, 9: 8, 10: 9}


def test_the_t_test_is_scipys_and_a_tie_is_on_neither_side() -> None:
    values = [0.3, -0.1, 0.5, 0.0]
    sample = Sample.of(values)
    assert (sample.above, sample.below) == (2, 1)
    for one, side in ((sample, "greater"), (-sample, "less")):
        p_value = stats.ttest_1samp(values, 0, alternative=side).pvalue
        assert one.p_above() == pytest.approx(p_value)
    assert Sample.of([0.0] * 5).p_above() == 1
    assert Sample.of([0.1] * 5).p_above() == 1 / 32


def test_a_tie_is_no_sign_for_either_side() -> None:
    """Four of five above 0 and one tie: of 32 outcomes, six have four or five."""
    sample = Sample.of([2.0, 1.9, 2.1, 2.0, 0.0])
    assert sample.p_above() == pytest.approx(6 / 32)
