"""Verdicts, intervals and ranks at their edges, worked out by hand or by scipy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cohort.results.agreement import Printed, agreement
from cohort.results.claims.judge import decide as decide_with_bounds
from cohort.results.claims.judge import overall_verdict
from cohort.results.claims.values import NEVER, Value
from cohort.results.intervals import Sample, welch_p
from cohort.results.ranks import ranking
from tests.results.claims.samples import claim, final, verdict
from tests.results.claims.test_verdicts import GAIN, decide, runs
from tests.results.test_across import scores_of
from tests.results.test_agreement import MARGIN, OURS


def test_a_deviation_over_two_runs_is_not_believed():
    """The paper prints a deviation of 0.02 over two runs. Its error, 0.02 / sqrt 2, is larger than
    ours, 0.0114, and counts; the degrees of freedom are our four, not Welch's one."""
    half = float(stats.t.ppf(0.975, 4)) * math.sqrt(0.00013 / 5 + 0.02**2 / 2)
    assert agreement(OURS, Printed(0.45, 0.02, 2), MARGIN).interval == pytest.approx(
        (0.016 - half, 0.016 + half)
    )


def test_two_values_without_any_spread():
    """Three runs of 1 and three of 2 differ without a doubt; one run each says nothing."""
    low, high = Sample.of([1.0] * 3), Sample.of([2.0] * 3)
    assert welch_p(low, high) == 0
    assert welch_p(low, low) == welch_p(Sample.of([1.0]), high) == 1


def test_no_p_value_is_above_one():
    assert Sample.of([-1.0, 1.0]).p_value() == 1 == Sample.of([0.0] * 4).p_value()


def test_one_contrast_of_few_seeds_makes_a_verdict_lean():
    few, many = Sample(4, 1.0, 0.1, 4, 0), Sample(10, 1.0, 0.1, 10, 0)
    assert decide([[[many], [few]]]) == ["leans towards held"]
    assert decide([[[many], [many]]]) == ["held"]


def test_a_tie_in_one_clause_is_a_tie_whatever_others_say():
    """No number of seeds decides a claim of which one clause is 0 in every seed."""
    tie, up, unclear = Sample(6, 0.0, 0.0), Sample(6, 1.0, 0.1, 6, 0), Sample(6, 0.1, 1.0, 3, 3)
    assert decide([[[tie], [up]]]) == ["tie"]
    assert decide([[[tie], [unclear]]]) == ["tie"]
    assert overall_verdict(["undecided", "tie", "held"]) == "tie"
    assert overall_verdict(["tie", "leans towards not held"]) == "leans towards not held"
    assert overall_verdict(["leans towards held", "undecided"]) == "undecided"
    assert overall_verdict(["leans towards held", "held"]) == "leans towards held"
    assert overall_verdict([]) == "held"


def test_the_bounds_that_are_shown_are_those_that_decide():
    """Of two alternatives each is tested at 2.5 %, one side: t of 0.975 with nine degrees of freedom
    is 2.262; for not held the only clause is tested at 5 %: 1.833."""
    good, bad = Sample(10, 1.0, 1.0, 8, 2), Sample(10, -1.0, 1.0, 2, 8)
    ((_, (contrast, low, high)),) = decide_with_bounds([[[good, bad]]])
    assert contrast == good
    assert low == pytest.approx(1 - 2.2622 / math.sqrt(10), abs=1e-4)
    assert high == pytest.approx(1 + 1.8331 / math.sqrt(10), abs=1e-4)


def test_the_comparison_with_the_fewest_seeds_in_common_decides(tmp_path: Path):
    """Two partitions: five seeds of the first are shared, and one of the second."""
    cells = []
    for partition, shift in (("iid", 0), ("classes-2", 4)):
        for seed in range(5):
            accuracy = 0.8 + 0.001 * seed
            cells += [
                final(accuracy, partition=partition, strategy="turns", seed=seed),
                final(0.7, partition=partition, strategy="fedavg", seed=seed + shift),
            ]
    result = verdict(GAIN, tmp_path, main=cells)
    assert result.verdict == "not enough runs"
    assert result.gap == "1 seed in common, at least 3 are needed"


def test_a_run_that_never_gets_there_counts_with_the_round_after_its_last():
    value = Value(20.0, 2, 2, seeds={"0": 10.0, "1": NEVER}, rounds=29.0)
    assert (value.sample.mean, value.censored) == (20.0, 1)


@pytest.mark.parametrize(("accuracy", "at_chance"), [(0.0105, 1), (0.0106, 0)])
def test_five_percent_above_a_guess_are_still_at_chance(
    tmp_path: Path, accuracy: float, at_chance: int
):
    """A hundred classes: a guess is right in 1 %."""
    result = verdict(GAIN, tmp_path, main=runs(turns=[0.5] * 5, fedavg=[0.4] * 4 + [accuracy]))
    assert ("1 of 5 runs at chance level" in result.evidence) == bool(at_chance)


def test_without_friedmans_word_nobody_differs_whatever_nemenyi_says() -> None:
    """Eight strategies in four settings: the first is best and the last worst, and the others take
    turns. Nemenyi's critical difference is 3.031 sqrt(8 * 9 / 24) = 5.25; the first and the last lie
    further apart, and yet Friedman's p-value is above 5 %."""
    ranks = np.array(
        [
            [1, 1, 2, 3],
            [2, 7, 8, 2],
            [4, 4, 3, 7],
            [6, 6, 5, 1],
            [5, 2, 6, 4],
            [7, 5, 1, 5],
            [3, 3, 4, 8],
            [8, 8, 7, 6],
        ]
    )
    assert all(sorted(column) == list(range(1, 9)) for column in ranks.T)
    assert stats.friedmanchisquare(*-ranks).pvalue > 0.05
    result = ranking(scores_of(-ranks[:, :, None].astype(float)))
    means = list(result.ranks.values())
    assert means[-1] - means[0] > result.difference
    assert result.groups == [tuple(result.ranks)]


def test_a_diverged_run_would_never_have_got_there(tmp_path: Path):
    """It ends in round 3, but counts as one of forty rounds: 10, 12 and 14 against 30, 41 and 41."""
    quick = {seed: {10 + 2 * seed: 0.3, 40: 0.3} for seed in range(3)}
    cells = [
        ({"partition": "quick", "seed": seed}, "done", values) for seed, values in quick.items()
    ]
    cells += [
        ({"partition": "slow", "seed": 0}, "done", {30: 0.3, 40: 0.3}),
        ({"partition": "slow", "seed": 1}, "done", {40: 0.1}),
        ({"partition": "slow", "seed": 2}, "diverged", {3: math.nan}),
    ]
    rises = claim("order", along="partition", values=["quick", "slow"], way="rises", at="first 0.2")
    result = verdict(rises, tmp_path, main=cells)
    assert "12 < 37.3" in result.evidence and "restricted to 41 rounds" in result.evidence
