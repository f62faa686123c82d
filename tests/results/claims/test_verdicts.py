"""The verdicts of runs, each from seeds whose statistics are worked out by hand."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from cohort.results.claims import judged
from cohort.results.statistics import Sample, SignedRanks
from tests.results.claims.samples import Cell, claim, final, verdict

GAIN = claim("gain", along="strategy", pairs=[["turns", "fedavg"]])
RISES = claim("order", along="strategy", values=["quick", "slow"], way="rises", at="first 0.2")
UP, DOWN = Sample(10, 1.0, 0.1, 10, 0), Sample(10, -1.0, 0.1, 0, 10)
UNCLEAR, TIE, FEW = Sample(10, 0.1, 1.0, 5, 5), Sample(6, 0.0, 0.0), Sample(4, 1.0, 0.1, 4, 0)
CLEAR = Sample.of([0.01, 0.01, 0.05, 0.07, 0.02])  # p = 0.028
FIVE, SIX = Sample.of([1, 2, 1.5, 1.2, 1.1]), Sample.of([1, 2, 1.5, 1.2, 1.1, 1.3])
BEHIND = [Sample(10, t / 10**0.5, 1.0, 0, 10) for t in (-2.4, -10, -1.98)]


def decide(comparisons: list[list[list[Sample]]]) -> list[str]:
    return [verdict for verdict, _ in judged.decide(comparisons)]


def runs(**values: Sequence[float]) -> list[Cell]:
    """Cells of strategies with these final values, one per seed."""
    return [
        final(value, strategy=name, seed=seed)
        for name, result in values.items()
        for seed, value in enumerate(result)
    ]


@pytest.mark.parametrize(
    ("gains", "expected", "ending"),
    [
        # mean 0.743, sd 1.544; t of 0.95 with two degrees of freedom is 2.920: 0.743 ± 2.603
        (
            (2.43, -0.60, 0.40),
            "undecided",
            "[+0.74, -1.86 to +3.35, above 0 in 2 of 3 seeds]; 3 seeds; a verdict needs at least 5",
        ),
        ((2.0, 2.2, 1.8, 2.1, 1.9), "held", "above 0 in 5 of 5 seeds]"),
        ((-2.0, -2.2, -1.8, -2.1, -1.9), "not held", "seeds]"),
        ((2.0, 2.2, 1.8, 2.1, -0.1), "undecided", "seeds]"),  # t = 3.7, but 4 of 5 seeds only
        ((0.1, 9.0, 0.1, 0.1, 30.0), "undecided", "seeds]"),  # 5 of 5 seeds, but t = 1.35
        ((2.0, 2.2, 1.8, 2.1, 1.9, 2.3, -0.1), "undecided", "seeds]"),  # 6 of 7: p = 8 / 128
        ((2.0, 2.2, 1.8, 2.1, 1.9, 2.3, 2.0, -0.1), "held", "seeds]"),  # 7 of 8: p = 9 / 256
        ((2.0, 2.2, 1.8), "leans towards held", "; 3 seeds; a verdict needs at least 5"),
        ((-2.0, -2.2, -1.8, -2.1), "leans towards not held", "; a verdict needs at least 5"),
        ((2.0, 2.2), "not enough runs", "2 seeds in common, at least 3 are needed"),
        ((0.0,) * 3, "tie", "tie in all 3 seeds]"),
        ((1.0,) * 5, "held", "seeds]"),
    ],
)
def test_a_verdict_needs_the_interval_and_the_signs(
    tmp_path: Path, gains: tuple[float, ...], expected: str, ending: str
) -> None:
    """Of the differences within seeds: FedAvg's seeds lie 20 points apart."""
    base = [0.1 + 0.2 * (seed % 4) for seed in range(len(gains))]
    turns = [value + gain / 100 for value, gain in zip(base, gains, strict=True)]
    result = verdict(GAIN, tmp_path, main=runs(turns=turns, fedavg=base))
    assert result.verdict == expected and result.evidence.endswith(ending)


@pytest.mark.parametrize(
    ("comparisons", "expected"),
    [
        ([[[UP, DOWN]]], ["held"]),  # a clause is true if one contrast is above 0
        ([[[UNCLEAR, DOWN]]], ["undecided"]),
        ([[[DOWN, DOWN]]], ["not held"]),
        ([[[UP], [DOWN, DOWN]], [[UP]]], ["not held", "held"]),
        ([[[UP], [FEW]]], ["leans towards held"]),
        ([[[TIE], [UNCLEAR]]], ["tie"]),  # no number of seeds decides it
        ([[[TIE], [UP]]], ["tie"]),
        # by Holm p of 0.02, 2e-6 and 0.04 at 0.05 / 2, 0.05 / 3 and 0.05
        ([[[BEHIND[0]], [BEHIND[1]]], [[BEHIND[2]]]], ["not held", "not held"]),
        # p = 0.028 is enough for held in each of 16 comparisons, but refuting takes 0.05 / 16
        ([[[CLEAR]]] * 16, ["held"] * 16),
        ([[[-CLEAR]]], ["not held"]),
        ([[[-CLEAR]]] * 16, ["undecided"] * 16),
        # alternatives share the 5 %: of 5 of 5 seeds p is 1 / 32, of 6 of 6 it is 1 / 64
        ([[[FIVE]], [[FIVE, -SIX]], [[SIX, -SIX]]], ["held", "undecided", "held"]),
    ],
)
def test_clauses_and_contrasts(comparisons: list[list[list[Sample]]], expected: list[str]) -> None:
    assert decide(comparisons) == expected


def test_averages_over_settings_are_judged_by_signed_ranks() -> None:
    """SciPy's exact Wilcoxon test has p = 0.098 and 0.001, Student's t 0.035 and 0.16."""
    mostly_ahead = SignedRanks.of([1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, -1.35])
    far_outlier = SignedRanks.of([*np.arange(0.1, 0.19, 0.01), 30])
    assert decide([[[mostly_ahead]], [[far_outlier]]]) == ["undecided", "held"]


def test_the_bounds_that_are_shown_are_those_that_decide() -> None:
    """Of two alternatives each is tested at 2.5 %, one side: t of 0.975 with nine degrees of freedom
    is 2.262; for not held the only clause is tested at 5 %: 1.833."""
    good, bad = Sample(10, 1.0, 1.0, 8, 2), Sample(10, -1.0, 1.0, 2, 8)
    ((_, bounded),) = judged.decide([[[good, bad]]])
    assert bounded is not None and bounded[0] == good
    assert bounded[1:] == pytest.approx((1 - 2.2622 / 10**0.5, 1 + 1.8331 / 10**0.5), abs=1e-4)
    ((_, bounded),) = judged.decide([[[UP], [UNCLEAR]]])  # of two contrasts the worse one
    assert bounded is not None and bounded[0] == UNCLEAR
    assert decide([[[Sample(10, 0.0, 1.0, 5, 5)]]]) == ["undecided"]  # no tie: its values differ


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (["undecided", "tie", "held"], "tie"),
        (["tie", "leans towards not held"], "leans towards not held"),
        (["leans towards held", "undecided"], "undecided"),
        (["leans towards held", "held"], "leans towards held"),
        ([], "held"),
    ],
)
def test_a_claim_is_as_good_as_its_worst_comparison(verdicts: list[str], worst: str) -> None:
    assert judged.overall_verdict(verdicts) == worst


@pytest.mark.parametrize(("stuck", "remark"), [(0.0105, True), (0.0106, False)])
def test_stuck_runs_are_counted_and_do_not_decide(
    tmp_path: Path, stuck: float, remark: bool
) -> None:
    """In four seeds `turns` is behind by a point; in the fifth FedAvg guesses one of 100 classes, or
    is 6 % better than a guess."""
    result = verdict(GAIN, tmp_path, main=runs(turns=[0.79] * 5, fedavg=[0.80] * 4 + [stuck]))
    assert result.verdict == "undecided"
    assert ("1 of 5 runs at chance level (FedAvg" in result.evidence) == remark


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 0, 0, 0), "held"),
        ((0, 0, 0, 0, 1), "not held"),  # the mean, 0.2, is below 1
        ((0, 0, 0), "leans towards held"),
        ((0, 0, 1), "not held"),
    ],
)
def test_each_run_counts_where_a_claim_is_about_all(
    tmp_path: Path, counts: tuple[int, ...], expected: str
) -> None:
    per_run = claim("range", below=1, every="runs", metric="never_selected")
    result = verdict(per_run, tmp_path, main=runs(a=counts))
    assert result.verdict == expected
    assert f"in {counts.count(0)} of {len(counts)} runs" in result.evidence


@pytest.mark.parametrize("accuracy", [0.607, math.nan])
def test_a_strategy_that_always_diverges_is_not_ahead(tmp_path: Path, accuracy: float) -> None:
    """What it had before, 60.7 % to 50 %, is worth no more than a guess among a hundred classes."""
    cells = runs(fedavg=[0.5] * 5)
    cells += [final(accuracy, "diverged", strategy="turns", seed=seed) for seed in range(5)]
    result = verdict(GAIN, tmp_path, main=cells)
    assert result.verdict == "not held" and "1.00 - 50.00 = -49.00" in result.evidence
    assert "5 of 5 runs diverged (turns" in result.evidence


def test_only_common_seeds_are_paired_and_shown(tmp_path: Path) -> None:
    cells = runs(turns=[0.51, 0.52, 0.53], fedavg=[0.41, 0.42, 0.43])
    cells += [final(0.9, strategy="fedavg", seed=9)]
    result = verdict(GAIN, tmp_path, main=cells)
    assert "52.00 - 42.00 = 10.00" in result.evidence and "3 of 3 seeds]" in result.evidence
    numbers = list(result.comparisons[0].numbers[1].values())
    assert numbers == ["42.00", "1.00", "39.52", "44.48", 3, 4]


SIX_RUNS = runs(turns=[0.5] * 6, fedavg=[0.1] * 6)


@pytest.mark.parametrize(
    ("full", "cells", "lacking", "counts"),
    [
        # an unfinished run is not counted, however good it is and clear the others are
        *(
            (None, [*SIX_RUNS[:-1], (SIX_RUNS[-1][0], status, values)], "FedAvg", [(6, 6), (5, 6)])
            for status, values in (("missing", {}), ("unfinished", {10: 0.9}))
        ),
        (SIX_RUNS, SIX_RUNS[::6], "turns / FedAvg", [(1, 6), (1, 6)]),  # seeds that a scale omits
    ],
)
def test_what_is_missing_leaves_it_open(
    tmp_path: Path, full: list[Cell] | None, cells: list[Cell], lacking: str, counts: list[object]
) -> None:
    result = verdict(GAIN, tmp_path, full=full, main=cells)
    assert (result.verdict, result.gap) == ("not enough runs", f"lacks runs of {lacking}")
    assert [(row["n"], row["planned"]) for row in result.comparisons[0].numbers] == counts


def test_runs_that_never_reach_the_target_are_counted(tmp_path: Path) -> None:
    """All runs are restricted to 41 rounds: 10, 12 and 14 against 30, 41 and 41, whose differences
    have the mean 25.3 and sd 4.73, t = 9.3. A diverged run would never have got there."""
    quick = [{10: 0.3, 40: 0.3}, {12: 0.3, 40: 0.3}, {14: 0.3, 40: 0.3}]
    slow = [{30: 0.3, 40: 0.3}, {40: 0.1}, {40: 0.1}]
    cells: list[Cell] = [
        ({"strategy": name, "seed": seed}, "done", values)
        for name, curves in (("quick", quick), ("slow", slow))
        for seed, values in enumerate(curves)
    ]
    result = verdict(RISES, tmp_path, main=cells)
    assert result.verdict == "leans towards held" and "12 < 37.3" in result.evidence
    remark = ", means restricted to 41 rounds"
    assert f"2 of 3 runs do not reach it (slow){remark}" in result.evidence
    diverged = verdict(RISES, tmp_path, main=[*cells[:5], (cells[5][0], "diverged", {3: math.nan})])
    assert "12 < 37.3" in diverged.evidence and remark in diverged.evidence
    never = [(labels, status, {40: 0.1}) for labels, status, _ in cells]
    numbers = verdict(RISES, tmp_path, main=never).comparisons[0].numbers
    assert [list(row.values()) for row in numbers] == [["never", "", "", "", 3, 3]] * 2
