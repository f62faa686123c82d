"""Agreement with a paper's value: by hand, by scipy, and how often a word is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cohort.results.agreement import Printed, agreement, margin_of

MARGIN = 0.02  # two points
OURS = (0.46, 0.47, 0.48, 0.47, 0.45)  # mean 0.466, deviation sqrt(0.00013) = 0.0114
THEIRS = (0.43, 0.47, 0.45, 0.44)  # mean 0.4475, deviation 0.0171


def test_the_interval_is_welchs() -> None:
    """Theirs is the larger deviation, so that Welch's freedom, 5.04, is capped by our 4."""
    paper = Printed(float(np.mean(THEIRS)), float(np.std(THEIRS, ddof=1)), len(THEIRS))
    welch = stats.ttest_ind(OURS, THEIRS, equal_var=False)
    error = 0.0185 / welch.statistic
    assert welch.df == pytest.approx(5.04, abs=0.005)
    half = float(stats.t.ppf(0.975, 4)) * error
    assert agreement(OURS, paper, MARGIN).interval == pytest.approx((0.0185 - half, 0.0185 + half))


def test_welchs_freedom_where_it_is_the_smaller_one() -> None:
    paper = Printed(0.45, 0.04, 3)
    mine, theirs = 0.00013 / 5, 0.04**2 / 3
    freedom = (mine + theirs) ** 2 / (mine**2 / 4 + theirs**2 / 2)
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(mine + theirs)
    assert freedom < 4
    assert agreement(OURS, paper, MARGIN).interval == pytest.approx((0.016 - half, 0.016 + half))


@pytest.mark.parametrize(
    ("paper", "error"),
    [
        (Printed(0.45), 0.00013 / 5 + 0.00013),  # one run, with a deviation like ours
        (Printed(0.45, 0.02, 1), 0.00013 / 5 + 0.02**2),  # one run that varies more than ours
        (Printed(0.45, None, 3), 0.00013 / 5 + 0.00013 / 3),
        (Printed(0.45, None, 20), 0.00013 / 5 * 2),  # no more exact than ours
        (Printed(0.45, 0.0, 3), 0.00013 / 5 + 0.00013 / 3),
        # F = 0.00013 / 0.006^2 = 3.6, p = 0.23; with 0.009 it is 1.6, p = 0.42
        (Printed(0.45, 0.006, 3), 0.00013 / 5 + 0.00013 / 3),
        (Printed(0.45, 0.009, 3), 0.00013 / 5 + 0.009**2 / 3),
    ],
)
def test_the_papers_error(paper: Printed, error: float) -> None:
    """All have our four degrees of freedom; the last has 4.7 by Welch."""
    half = 2.7764451 * math.sqrt(error)
    assert agreement(OURS, paper, MARGIN).interval == pytest.approx((0.016 - half, 0.016 + half))


def test_the_f_test_is_scipys() -> None:
    """A printed deviation is doubted from the point on where scipy's F has 40 % above."""
    limit = math.sqrt(0.00013 / float(stats.f.isf(0.4, 4, 2)))
    believed, doubted = (
        agreement(OURS, Printed(0.45, limit * factor, 3), MARGIN).interval
        for factor in (1.001, 0.999)
    )
    assert believed and doubted
    assert doubted[1] - doubted[0] > 1.01 * (believed[1] - believed[0])


@pytest.mark.parametrize(
    ("value", "margin", "word"),
    [
        # the interval of 90 % reaches 0.02663 to each side, that of 95 % 0.03468
        (0.465, 0.0277, "agrees"),  # 0.001 + 0.02663 = 0.02763
        (0.465, 0.0276, "cannot tell"),
        (0.467, 0.0277, "agrees"),
        (0.516, 0.0153, "differs"),  # 0.050 - 0.03468 = 0.01532
        (0.516, 0.0154, "cannot tell"),
        (0.416, 0.0153, "differs"),
    ],
)
def test_words_by_hand(value: float, margin: float, word: str) -> None:
    """The error beside one run is 0.011402 sqrt(1/5 + 1) = 0.012490; t of four degrees of freedom
    is 2.1318 and 2.7764."""
    assert agreement(OURS, Printed(value), margin).verdict == word


@pytest.mark.parametrize(
    ("printed", "unit", "points"),
    [
        (0.528, "%", 2),
        (0.96, "%", 2),  # 4 % of errors: the last number with two points
        (0.989, "%", 0.55),
        (0.0100, "%", 0.5),
        (0.10, "%", 2),  # chance level of ten classes
        (1.0, "%", 0),
        (0.0023, "points", 2),  # a gain near 0 is in the middle of its scale
        (-0.0155, "points", 2),
    ],
)
def test_the_margin_by_hand(printed: float, unit: str, points: float) -> None:
    assert margin_of(printed, unit) == pytest.approx(points / 100)


def test_one_run_has_a_difference_only() -> None:
    result = agreement([0.5], Printed(0.25, 0.01, 3), MARGIN)
    assert (result.difference, result.interval, result.verdict) == (0.25, None, None)
    assert agreement([0.5, 0.5], Printed(math.inf), MARGIN).verdict is None


@pytest.mark.parametrize(
    ("runs", "paper", "word"),
    [
        (3, Printed(0.10, 0.0, 3), "agrees"),
        (3, Printed(0.12, 0.0, 3), "agrees"),  # exactly the margin, though not in binary
        (3, Printed(0.13, 0.0, 3), "differs"),
        (3, Printed(0.13), "differs"),
        (2, Printed(0.10, 0.0, 3), "cannot tell"),  # two runs may be equal by chance
    ],
)
def test_no_spread_on_either_side(runs: int, paper: Printed, word: str) -> None:
    """A strategy that is stuck at chance level in all runs is so without any error."""
    result = agreement([0.10] * runs, paper, MARGIN)
    assert result.interval == (result.difference, result.difference)
    assert result.verdict == word


def test_spread_on_their_side_only() -> None:
    """The error is theirs, as are the degrees of freedom."""
    result = agreement([0.10] * 5, Printed(0.12, 0.03, 4), MARGIN)
    half = float(stats.t.ppf(0.975, 3)) * 0.015
    assert result.interval == pytest.approx((-0.02 - half, -0.02 + half))


STUDIES = 20_000


@pytest.mark.parametrize(
    ("n", "runs", "ratio", "printed"),
    [
        (3, 1, 1.0, None),
        (5, 1, 1.0, None),
        (10, 3, 1.0, None),
        (2, 10, 0.5, 1.0),  # where Welch's freedom would be wrong in 7.9 and 5.7 %
        (10, 3, 2.0, 1.0),
        (5, 3, 1.0, 0.3),  # a printed deviation that is too small
        (3, 3, 1.0, 0.0),
    ],
)
def test_how_often_a_word_is_wrong(n: int, runs: int, ratio: float, printed: float | None) -> None:
    """At the margin no more than 5.2 % agree and 2.8 % differ; the paper's deviation is `ratio`
    times ours, and it prints `printed` times its own.

    Normal means do not depend on deviations, so that all of the error is drawn as the paper's, by
    evenly spaced quantiles.
    """
    rng = np.random.default_rng(1)
    ours = rng.normal(0, MARGIN / 20, (STUDIES, n))
    ours += MARGIN - ours.mean(axis=1, keepdims=True)
    sds = ratio * MARGIN / 20 * np.sqrt(rng.chisquare(max(runs - 1, 1), STUDIES) / (runs - 1 or 1))
    error = MARGIN / 20 * math.sqrt(1 / n + ratio**2 / runs)
    values = error * stats.norm.ppf((np.arange(STUDIES) + 0.5) / STUDIES)
    words = [
        agreement(
            our, Printed(value, None if printed is None else printed * sd, runs), MARGIN
        ).verdict
        for our, value, sd in zip(ours, values, sds, strict=True)
    ]
    assert words.count("agrees") / STUDIES <= 0.052
    assert words.count("differs") / STUDIES <= 0.028
