"""The five words, each from seeds whose statistics are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cohort.claims.decision import decide, seeds_to_decide
from cohort.claims.evidence import more_seeds
from cohort.claims.values import seconds_per_seed
from cohort.claims.verdict import Verdict
from cohort.core.errors import UserError
from cohort.metrics.intervals import Sample, holm, welch
from tests.claims.samples import Cell, claim, final, frame, matrix, verdict

GAIN = claim("gain", along="strategy", pairs=[["turns", "fedavg"]])


def runs(along: str = "strategy", **values: Sequence[float]) -> list[Cell]:
    """Cells with these final values, one per seed."""
    return [
        final(value, **{along: name, "seed": seed})
        for name, found in values.items()
        for seed, value in enumerate(found)
    ]


def gained(folder: Path, *gains: float) -> Verdict:
    """The verdict on `turns` being better than `fedavg`, by so many points seed by seed."""
    base = [0.8559 + 0.01 * seed for seed in range(len(gains))]
    turns = [one + gain / 100 for one, gain in zip(base, gains, strict=True)]
    return verdict(GAIN, folder, main=runs(turns=turns, fedavg=base))


def test_a_mean_that_is_ahead_in_two_of_three_seeds_is_undecided(tmp_path: Path) -> None:
    """2.43, -0.60 and 0.40: mean 0.743, sd 1.544, t = 0.834 with 2 degrees of freedom, p = 0.49;
    the interval is 0.743 ± 4.303 * 1.544 / 3 ** 0.5 = 0.743 ± 3.835."""
    found = gained(tmp_path, 2.43, -0.60, 0.40)
    assert found.word == "undecided"
    assert "? " in found.evidence and "[+0.74, -3.09 to +4.58, n = 3]" in found.evidence
    # t(0.975, 18) = 2.101 > 0.743 / 1.544 * 19 ** 0.5 = 2.098; with 20 seeds 2.093 < 2.153
    assert found.seeds == 20
    assert (
        "20 seeds would decide it if means and spread stay as they are (17 more" in found.evidence
    )


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ((2.0, 2.2, 1.8), "held"),
        ((-2.0, -2.2, -1.8), "not held"),
        ((2.0, 2.2), "not enough runs"),
        ((0.0, 0.0, 0.0), "undecided"),
        ((1.0, 1.0, 1.0), "held"),
    ],
)
def test_on_which_side_of_the_margin_the_interval_lies(
    tmp_path: Path, gains: tuple[float, ...], word: str
) -> None:
    assert gained(tmp_path, *gains).word == word


def test_pairs_by_seed_count_not_the_spread_of_each(tmp_path: Path) -> None:
    """Seeds that differ by 20 points, and a gain of 0.9, 1.0 and 1.1 within each."""
    base = [0.5, 0.7, 0.9]
    turns = [0.509, 0.710, 0.911]
    assert verdict(GAIN, tmp_path, main=runs(turns=turns, fedavg=base)).word == "held"


def test_only_common_seeds_are_paired(tmp_path: Path) -> None:
    cells = runs(turns=[0.51, 0.52, 0.53], fedavg=[0.41, 0.42, 0.43])
    cells += [final(0.4, strategy="fedavg", seed=9)]
    assert "n = 3]" in verdict(GAIN, tmp_path, main=cells).evidence
    apart = [
        (labels | {"seed": labels["seed"] + 10 * (labels["strategy"] == "turns")}, status, values)
        for labels, status, values in cells
    ]
    assert "0 seeds in common" in verdict(GAIN, tmp_path, main=apart).evidence


def test_several_comparisons_are_corrected_together(tmp_path: Path) -> None:
    """t = 5.2 on 2 degrees of freedom has p = 0.035: enough alone, not as one of two."""
    falls = claim("order", along="strategy", values=["a", "b", "c"], way="falls")
    wide = [0.02, 0.04, 0.03]  # t = 3 / 1 * 3 ** 0.5 = 5.2
    b = [0.5, 0.5, 0.5]
    a = [one + gain for one, gain in zip(b, wide, strict=True)]
    alone = claim("order", along="strategy", values=["a", "b"], way="falls")
    assert verdict(alone, tmp_path, main=runs(a=a, b=b)).word == "held"
    c = [one - gain for one, gain in zip(b, wide, strict=True)]
    assert verdict(falls, tmp_path, main=runs(a=a, b=b, c=c)).word == "undecided"


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.4450, 0.4452, 0.4448), "held"),
        ((0.0090, 0.0100, 0.0110), "not held"),  # close together, but far from 44 %
        ((0.4400, 0.4450, 0.4500), "undecided"),
    ],
)
def test_a_spread_is_held_against_the_range_that_the_sentence_names(
    tmp_path: Path, values: tuple[float, ...], word: str
) -> None:
    made = claim("spread", along="strategy", between=[44, 45])
    cells = runs(a=values, b=values)
    found = verdict(made, tmp_path, main=cells)
    assert found.word == word
    assert "asked for 44.00 to 45.00" in found.evidence


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "it needs the range that the sentence names"),
        ({"between": [45, 44]}, r"between is \[45, 44\], a range that ends before it begins"),
    ],
)
def test_a_spread_must_name_a_range(fields: dict[str, list[float]], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim("spread", along="strategy", **fields).check()


def test_runs_that_never_reach_the_target_are_counted(tmp_path: Path) -> None:
    """All runs are cut off at 40 rounds: 10, 12 and 14 against 30, 40 and 40."""
    quick = {seed: {10 + 2 * seed: 0.3, 40: 0.3} for seed in range(3)}
    slow: dict[int, dict[int, float]] = {0: {30: 0.3, 40: 0.3}, 1: {40: 0.1}, 2: {40: 0.1}}
    cells: list[Cell] = [
        ({"partition": name, "seed": seed}, "done", values)
        for name, found in (("quick", quick), ("slow", slow))
        for seed, values in found.items()
    ]
    rises = claim("order", along="partition", values=["quick", "slow"], way="rises", at="first 0.2")
    found = verdict(rises, tmp_path, main=cells)
    assert found.word == "held"  # 20, 28 and 26: mean 24.7, sd 4.16, t = 10.3
    assert "12 < 36.7" in found.evidence
    assert "not reached by 2 of 3 runs (slow)" in found.evidence


def test_holm_by_hand() -> None:
    """0.01 and 0.02 of four are tested at 0.05 / 4 and 0.05 / 3; 0.02 is above that, and ends it."""
    assert holm([0.30, 0.01, 0.02, 0.04]) == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert holm([0.01, 0.02]) == pytest.approx([0.025, 0.05])
    assert holm([]) == []


def test_intervals_are_those_of_scipy() -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    sample = Sample.of(values)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert sample.interval() == pytest.approx((low, high))
    assert sample.p_value() == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    other = np.array([0.1, 0.5, 0.2])
    assert welch(sample, Sample.of(other)) == pytest.approx(
        stats.ttest_ind(values, other, equal_var=False).pvalue
    )


def test_one_of_several_may_be_better() -> None:
    """A clause is true if one contrast is above 0, and false if all are below."""
    up, down, unclear = Sample(10, 1, 0.1), Sample(10, -1, 0.1), Sample(10, 0.1, 1)
    assert decide([[[up, down]]]) == ["held"]
    assert decide([[[unclear, down]]]) == ["undecided"]
    assert decide([[[down, down]]]) == ["not held"]
    assert decide([[[up], [down, down]], [[up]]]) == ["not held", "held"]
    assert seeds_to_decide([[[Sample(3, 0.0, 1.0)]]]) is None


def test_what_more_seeds_would_cost() -> None:
    """Ten rounds of 36 seconds in each of the two runs of a seed take 720 seconds."""
    cells = runs(turns=[0.1, 0.2, 0.3], fedavg=[0.1, 0.2, 0.2])
    rounds = dict.fromkeys(range(1, 11), 36.0)
    timed = frame([(labels, status, rounds) for labels, status, _ in cells], "seconds")
    timed = timed.assign(seed=timed["seed"].astype(str))
    points = [point for one in GAIN.resolved(matrix(main=cells)) for point in one.points]
    assert seconds_per_seed(points, lambda experiment, metric: timed) == 720
    assert "17 more, about 3.4 hours" in more_seeds(20, 3, 720)
    assert "17 more)" in more_seeds(20, 3, float("nan"))
