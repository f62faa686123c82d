"""Intervals, tests and agreement with a paper's value: by scipy, by hand, and by brute force."""

import itertools
import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cohort.core.metric import Metric
from cohort.core.sealed_json import SEAL, from_json, to_sealed_json
from cohort.results import statistics
from cohort.results.statistics import Sample, SignedRanks, agreement

MARGIN = 0.02  # two points
OURS = (0.46, 0.47, 0.48, 0.47, 0.45)  # mean 0.466, variance 0.00013


@pytest.mark.parametrize("seed", range(5))
def test_intervals_and_tests_are_those_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.5, 1, 4)
    sample = Sample.of(values)
    one_sample = stats.ttest_1samp(values, 0)
    assert sample.interval() == pytest.approx(tuple(one_sample.confidence_interval(0.95)))
    assert sample.p_value() == pytest.approx(one_sample.pvalue)
    for side, alternative in ((sample, "greater"), (-sample, "less")):
        p_value = stats.ttest_1samp(values, 0, alternative=alternative).pvalue
        assert side.p_above() == pytest.approx(p_value)


@pytest.mark.parametrize("n", [5, 6, 7, 12, 20])
def test_the_sign_test_is_scipys(n: int) -> None:
    """A deviation so small that the t-test is never the stricter one."""
    for above in range(n + 1):
        p_value = stats.binomtest(above, n, alternative="greater").pvalue
        assert Sample(n, 1.0, 1e-6, above, n - above).p_above() == pytest.approx(p_value)


def test_samples_without_any_spread() -> None:
    """One run says nothing. A tie is a sign for neither side: of 32 outcomes, six have four or five of five."""
    assert Sample.of([1.0]).p_value() == Sample.of([]).p_value() == 1
    assert Sample.of([-1.0, 1.0]).p_value() == 1 == Sample.of([0.0] * 4).p_value()
    assert Sample.of([0.0] * 5).p_above() == 1
    assert Sample.of([0.1] * 5).p_above() == 1 / 32
    assert Sample.of([2.0, 1.9, 2.1, 2.0, 0.0]).p_above() == pytest.approx(6 / 32)


@pytest.mark.parametrize(
    ("values", "better", "expected"),
    [
        ((1, 2, 1.5, 1.2, 1.1), "high", "better"),
        ((-1, -2, -1.5, -1.2, -1.1), "low", "better"),
        ((1, 2, 1.5, 1.2, -0.1), "high", "undecided"),  # t = 3.3, but 4 of 5 seeds only
        ((1, 2, 1.5, 1.2, 1.1), "", "undecided"),
        ((1, 2, 1.5), "high", "leans better"),
        ((1, 2, 1.5), "low", "leans worse"),
        ((1, 2), "high", "not enough runs"),
    ],
)
def test_a_word_needs_the_interval_and_the_signs(
    values: tuple[float, ...], better: str, expected: str
) -> None:
    assert Sample.of(values).verdict(better) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("p_values", "levels"),
    [
        ([0.30, 0.01, 0.02, 0.04], [0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3]),  # 0.02 ends it
        ([0.01, 0.02], [0.025, 0.05]),
        ([], []),
    ],
)
def test_holm_by_hand(p_values: list[float], levels: list[float]) -> None:
    assert statistics.holm_levels(p_values) == pytest.approx(levels)


def signed_rank_p(values: np.ndarray) -> float:
    """The share of all signs that give the positive ranks at least the sum that they have."""
    values = values[values != 0]
    ranks = stats.rankdata(np.abs(values))
    sums = [ranks @ signs for signs in itertools.product((0, 1), repeat=len(values))]
    return float(np.mean(np.array(sums) >= ranks[values > 0].sum() - 1e-9))


@pytest.mark.parametrize("seed", range(6))
def test_signed_ranks_with_ties_and_zeros(seed: int) -> None:
    values = np.random.default_rng(seed).integers(-3, 6, size=9).astype(float)
    sample = SignedRanks.of(values)
    for side, numbers in ((sample, values), (-sample, -values)):
        signs = stats.binomtest(int((numbers > 0).sum()), len(numbers), alternative="greater")
        assert side.p_above() == pytest.approx(max(signed_rank_p(numbers), signs.pvalue))


@pytest.mark.parametrize("level", [0.02, 0.1, 0.1 / 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_signed_ranks_has_the_centers_that_are_not_rejected(
    seed: int, level: float
) -> None:
    values = np.random.default_rng(seed).normal(1, 1, size=8)
    low, high = SignedRanks.of(values).interval(level)
    centers = {low - 1e-6: False, low + 1e-6: True, high - 1e-6: True, high + 1e-6: False}
    for center, is_inside in centers.items():
        sides = SignedRanks.of(values - center).p_above(), SignedRanks.of(center - values).p_above()
        assert (min(sides) > level / 2) == is_inside


@pytest.mark.parametrize(
    ("paper", "squared_error", "freedom"),
    [
        ((0.45,), 0.00013 / 5 + 0.00013, 4),  # one run, with a deviation like ours
        ((0.45, 0.02, 1), 0.00013 / 5 + 0.02**2, 4),  # one run that varies more than ours
        ((0.45, 0.02, 2), 0.00013 / 5 + 0.02**2 / 2, 4),  # of two runs it is not believed
        ((0.45, None, 3), 0.00013 / 5 + 0.00013 / 3, 4),
        ((0.45, None, 20), 0.00013 / 5 * 2, 4),  # no more exact than ours
        ((0.45, 0.0, 3), 0.00013 / 5 + 0.00013 / 3, 4),
        # F = 0.00013 / 0.006^2 = 3.6, p = 0.23; with 0.009 it is 1.6, p = 0.42
        ((0.45, 0.006, 3), 0.00013 / 5 + 0.00013 / 3, 4),
        ((0.45, 0.009, 3), 0.00013 / 5 + 0.009**2 / 3, 4),  # 4.7 by Welch
        (
            (0.45, 0.04, 3),
            0.00013 / 5 + 0.04**2 / 3,
            (0.00013 / 5 + 0.04**2 / 3) ** 2 / ((0.00013 / 5) ** 2 / 4 + (0.04**2 / 3) ** 2 / 2),
        ),
    ],
)
def test_the_error_of_a_papers_value(
    paper: tuple[Any, ...], squared_error: float, freedom: float
) -> None:
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(squared_error)
    assert agreement(OURS, *paper, margin=MARGIN)[0] == pytest.approx((0.016 - half, 0.016 + half))


@pytest.mark.parametrize(
    ("ours", "paper", "margin", "expected"),
    [
        # the error beside one run is 0.01249: 90 % reach 0.02663 to each side, 95 % 0.03468
        (OURS, (0.465,), 0.0277, "agrees"),  # 0.001 + 0.02663 = 0.02763
        (OURS, (0.465,), 0.0276, "cannot tell"),
        (OURS, (0.516,), 0.0153, "differs"),  # 0.050 - 0.03468 = 0.01532
        (OURS, (0.516,), 0.0154, "cannot tell"),
        # stuck at chance level without any error; the margin is not exact in binary
        ([0.10] * 5, (0.12, 0.0, 3), MARGIN, "agrees"),
        ([0.10] * 5, (0.13, 0.0, 3), MARGIN, "differs"),
        ([0.10] * 5, (0.13,), MARGIN, "differs"),
        ([0.10] * 4, (0.10, 0.0, 3), MARGIN, "cannot tell"),  # equal by chance
        ([0.5], (0.25, 0.01, 3), MARGIN, None),
        ([0.5, 0.5], (math.inf,), MARGIN, None),
    ],
)
def test_whether_a_papers_value_agrees(
    ours: list[float], paper: tuple[Any, ...], margin: float, expected: str | None
) -> None:
    assert agreement(ours, *paper, margin=margin)[1] == expected


@pytest.mark.parametrize(
    ("printed", "unit", "points"),
    [
        (0.528, "%", 2),
        (0.96, "%", 2),  # 4 % of errors: the last number with two points
        (0.989, "%", 0.55),
        (1.0, "%", 0),
        (0.01, "%", 0.5),
        (0.0023, "points", 2),  # a gain near 0 is in the middle of its scale
        (-0.0155, "points", 2),
    ],
)
def test_the_margin_by_hand(printed: float, unit: str, points: float) -> None:
    assert statistics.margin_of(printed, unit) == pytest.approx(points / 100)


@pytest.mark.parametrize(
    ("n", "runs", "ratio", "printed"),
    [
        (3, 1, 1.0, None),
        (10, 3, 1.0, None),
        (2, 10, 0.5, 1.0),  # where Welch's freedom would be wrong in 7.9 and 5.7 %
        (10, 3, 2.0, 1.0),
        (5, 3, 1.0, 0.3),  # a printed deviation that is too small
    ],
)
def test_how_often_a_verdict_is_wrong(
    n: int, runs: int, ratio: float, printed: float | None
) -> None:
    """At the margin no more than 5.2 % agree and 2.8 % differ; the paper's deviation is `ratio`
    times ours, and it prints `printed` times its own.

    Normal means do not depend on deviations, so that all of the error is drawn as the paper's, by
    evenly spaced quantiles.
    """
    rng, studies = np.random.default_rng(1), 20_000
    ours = rng.normal(0, MARGIN / 20, (studies, n))
    ours += MARGIN - ours.mean(axis=1, keepdims=True)
    sds = ratio * MARGIN / 20 * np.sqrt(rng.chisquare(max(runs - 1, 1), studies) / (runs - 1 or 1))
    error = MARGIN / 20 * math.sqrt(1 / n + ratio**2 / runs)
    values = error * stats.norm.ppf((np.arange(studies) + 0.5) / studies)
    verdicts = [
        agreement(our, value, None if printed is None else printed * sd, runs, margin=MARGIN)[1]
        for our, value, sd in zip(ours, values, sds, strict=True)
    ]
    assert verdicts.count("agrees") / studies <= 0.052
    assert verdicts.count("differs") / studies <= 0.028


def share_of_verdicts(verdict: str, differences: np.ndarray) -> float:
    """How often studies, a row each, get this verdict on their differences."""
    return float(np.mean([Sample.of(row).verdict("high") == verdict for row in differences]))


def test_how_often_a_verdict_on_a_claim_is_wrong() -> None:
    """No typical difference, but skewed noise, or runs that get stuck: a certain verdict
    comes in at most 5 %, in 3.6 % of up to twelve seeds, and a lean in 8 or, stuck, 18 %."""
    rng, studies = np.random.default_rng(1), 4000
    for n in (3, 4, 5, 8, 12, 13, 18, 30):
        skewed = rng.exponential(size=(studies, n)) - math.log(2)
        pairs = rng.normal(size=(2, studies, n)) - 20 * (rng.random((2, studies, n)) < 0.4)
        limits = (0.08, 0.18) if n < 5 else (0.036, 0.036) if n < 13 else (0.05, 0.05)
        for better in ("better", "worse"):
            verdict = f"leans {better}" if n < 5 else better
            shares = [share_of_verdicts(verdict, noise) for noise in (skewed, pairs[0] - pairs[1])]
            assert all(map(np.less, shares, np.add(limits, 0.008))), (n, better, shares)


@pytest.mark.parametrize(("n", "power"), [(5, 0.40), (8, 0.62), (10, 0.51), (11, 0.75)])
def test_how_often_a_difference_of_one_standard_deviation_is_confirmed(n: int, power: float):
    """Normal noise; ten seeds need nine on one side, as eight need seven."""
    differences = np.random.default_rng(1).normal(1, 1, (4000, n))
    assert share_of_verdicts("better", differences) == pytest.approx(power, abs=0.025)


def test_the_interval_of_an_estimate_has_95_percent_of_its_bootstrap() -> None:
    assert statistics.Estimate.of(0.0, np.arange(1001.0)).interval == (25, 975)


def test_a_diverged_run_counts_with_chance_level_in_the_standings() -> None:
    runs = [("a", "done", 0.5), ("b", "diverged", 0.4)]
    frame = pd.DataFrame(runs, columns=["strategy", "status", "value"], index=["0", "1"])
    frame = frame.rename_axis("digest").reset_index()
    frame = frame.assign(seed="0", metric="test_accuracy", round=1, client=None, classes=10)
    frame = frame.astype({"metric": "string", "round": "Int64"})
    values = statistics.runs_by_setting(frame, "test_accuracy", "last", ["strategy"])["value"]
    assert sorted(values) == [0.1, 0.5]


def test_seeds_that_are_not_in_all_settings_do_not_count() -> None:
    rows = [("a", "x", "0", 0.2), ("a", "y", "0", 0.4), ("a", "x", "1", 0.6)]
    frame = pd.DataFrame(rows, columns=["strategy", "setting", "seed", "value"])
    means = statistics.means_by_seed(frame, "strategy")
    assert means["a"].to_dict() == {"0": pytest.approx(0.3)}


@pytest.mark.parametrize(
    ("options", "mean", "interval", "shown"),
    [
        ({"unit": "%", "scale": 100}, 95.0, (88.0, 102.0), (88.0, 100.0)),
        ({"normalized": True}, 0.9, (-0.1, 1.06), (0.0, 1.0)),
        ({"unit": "s"}, 5.0, (-1.0, 11.0), (0.0, 11.0)),
        ({"unit": "%", "scale": 100, "signed": True}, -2.0, (-5.0, 1.0), (-5.0, 1.0)),
    ],
)
def test_an_interval_ends_where_values_do(
    options: dict, mean: float, interval: tuple[float, float], shown: tuple[float, float]
) -> None:
    assert Metric("Some metric", **options).clip_interval(mean, interval) == shown


def test_a_deviation_that_there_is_not_is_null_in_json():
    text = to_sealed_json(asdict(Sample.of([0.5])))
    values = {name: value for name, value in json.loads(text).items() if name != SEAL}
    assert '"sd": null' in text and math.isnan(from_json(Sample, values).sd)
