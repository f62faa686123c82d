"""The verdicts, each from seeds whose statistics are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cohort.core.errors import UserError
from cohort.results.claims.judge import Judgment
from cohort.results.claims.judge import decide as decide_with_bounds
from cohort.results.intervals import Sample, holm_levels, welch_p
from tests.results.claims.samples import Cell, claim, final, verdict

GAIN = claim("gain", along="strategy", pairs=[["turns", "fedavg"]])


def decide(comparisons: list[list[list[Sample]]]) -> list[str]:
    return [verdict for verdict, _ in decide_with_bounds(comparisons)]


def runs(along: str = "strategy", **values: Sequence[float]) -> list[Cell]:
    """Cells with these final values, one per seed."""
    return [
        final(value, **{along: name, "seed": seed})
        for name, result in values.items()
        for seed, value in enumerate(result)
    ]


def gained(folder: Path, *gains: float) -> Judgment:
    """The verdict on `turns` being better than `fedavg`, by so many points seed by seed."""
    base = [0.8559 + 0.01 * seed for seed in range(len(gains))]
    turns = [one + gain / 100 for one, gain in zip(base, gains, strict=True)]
    return verdict(GAIN, folder, main=runs(turns=turns, fedavg=base))


def test_a_mean_that_is_ahead_in_two_of_three_seeds_is_undecided(tmp_path: Path) -> None:
    """2.43, -0.60 and 0.40: mean 0.743, sd 1.544; t of 0.95 with 2 degrees of freedom is 2.920, so
    that the bounds are 0.743 ± 2.920 * 1.544 / 3 ** 0.5 = 0.743 ± 2.603."""
    result = gained(tmp_path, 2.43, -0.60, 0.40)
    assert result.verdict == "undecided"
    assert "? " in result.evidence
    assert "[+0.74, -1.86 to +3.35, above 0 in 2 of 3 seeds]" in result.evidence


@pytest.mark.parametrize(
    ("gains", "word"),
    [
        ((2.0, 2.2, 1.8, 2.1, 1.9), "held"),
        ((-2.0, -2.2, -1.8, -2.1, -1.9), "not held"),
        ((2.0, 2.2, 1.8, 2.1, -0.1), "undecided"),  # t = 3.7, but 4 of 5 seeds only
        ((0.1, 9.0, 0.1, 0.1, 30.0), "undecided"),  # 5 of 5 seeds, but t = 1.35
        ((2.0, 2.2, 1.8, 2.1, 1.9, 2.3, -0.1), "undecided"),  # 6 of 7: p = 8 / 128
        ((2.0, 2.2, 1.8, 2.1, 1.9, 2.3, 2.0, -0.1), "held"),  # 7 of 8: p = 9 / 256
        ((2.0, 2.2, 1.8), "leans towards held"),
        ((-2.0, -2.2, -1.8, -2.1), "leans towards not held"),
        ((2.0, 2.2), "not enough runs"),
        ((0.0, 0.0, 0.0, 0.0, 0.0), "tie"),
        ((1.0, 1.0, 1.0, 1.0, 1.0), "held"),
    ],
)
def test_a_verdict_needs_the_interval_and_the_signs(
    tmp_path: Path, gains: tuple[float, ...], word: str
) -> None:
    assert gained(tmp_path, *gains).verdict == word


@pytest.mark.parametrize(
    ("gains", "gap"),
    [
        ((2.0, 2.2, 1.8), "3 seeds; a verdict needs at least 5"),  # leans
        ((2.0, 2.2, -1.8, 0.1), "4 seeds; a verdict needs at least 5"),  # undecided
        ((2.0, 2.2, -1.8, 0.1, 0.2), ""),  # more seeds may decide it, but none can be promised
        ((0.0, 0.0, 0.0), ""),
    ],
)
def test_too_few_seeds_for_a_verdict_are_said(
    tmp_path: Path, gains: tuple[float, ...], gap: str
) -> None:
    result = gained(tmp_path, *gains)
    assert result.gap == gap
    assert result.evidence.endswith(f"seeds]; {gap}" if gap else "seeds]")


def test_a_strategy_that_is_stuck_in_one_run_of_five_is_not_decided_by_the_mean(
    tmp_path: Path,
) -> None:
    """In four seeds `turns` is behind by a point; in the fifth `fedavg` is at 1 % of 80."""
    cells = runs(turns=[0.79] * 5, fedavg=[0.80] * 4 + [0.01])
    result = verdict(GAIN, tmp_path, main=cells)
    assert result.verdict == "undecided"
    assert "1 of 5 runs at chance level (fedavg" in result.evidence.replace("FedAvg", "fedavg")


def test_pairs_by_seed_count_not_the_spread_of_each(tmp_path: Path) -> None:
    """Seeds that differ by 20 points, and a gain of 0.9 to 1.1 within each."""
    base = [0.5, 0.7, 0.9, 0.3, 0.1]
    turns = [0.509, 0.710, 0.911, 0.310, 0.110]
    assert verdict(GAIN, tmp_path, main=runs(turns=turns, fedavg=base)).verdict == "held"


def test_only_common_seeds_are_paired_and_shown(tmp_path: Path) -> None:
    cells = runs(turns=[0.51, 0.52, 0.53], fedavg=[0.41, 0.42, 0.43])
    cells += [final(0.9, strategy="fedavg", seed=9)]
    result = verdict(GAIN, tmp_path, main=cells)
    assert "52.00 - 42.00 = 10.00" in result.evidence and "3 of 3 seeds]" in result.evidence
    assert result.statistics.endswith("FedAvg: 42.00 ± 1.00, 39.52 to 44.48 (n = 3)")
    apart = [
        (labels | {"seed": labels["seed"] + 10 * (labels["strategy"] == "turns")}, status, values)
        for labels, status, values in cells
    ]
    assert "0 seeds in common" in verdict(GAIN, tmp_path, main=apart).evidence


def test_every_comparison_is_tested_at_five_percent(tmp_path: Path) -> None:
    """t = 3.2 / 2.68 * 5 ** 0.5 = 2.67 on 4 degrees of freedom has p = 0.028: enough for held in each
    of 16 comparisons, but refuting takes 0.05 / 16."""
    gains = [0.01, 0.01, 0.05, 0.07, 0.02]
    t_test = stats.ttest_1samp(gains, 0, alternative="greater")
    assert 0.025 < t_test.pvalue < 0.05
    up = Sample.of(gains)
    assert decide([[[up]]] * 16) == ["held"] * 16
    assert decide([[[-up]]]) == ["not held"]
    assert decide([[[-up]]] * 16) == ["undecided"] * 16


def test_alternatives_share_the_five_percent() -> None:
    """5 of 5 seeds have p = 1 / 32, above 0.05 / 2; 6 of 6 have 1 / 64."""
    down = Sample.of([-1.0, -2.0, -1.5, -1.2, -1.1, -1.3])
    for n, word in ((5, "undecided"), (6, "held")):
        up = Sample.of([1.0, 2.0, 1.5, 1.2, 1.1, 1.3][:n])
        assert decide([[[up]]]) == ["held"]
        assert decide([[[up, down]]]) == [word]


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((0.4450, 0.4452, 0.4448, 0.4451, 0.4449), "held"),
        (
            (0.0090, 0.0100, 0.0110, 0.0095, 0.0105) * 2,
            "not held",
        ),  # close together, but far from 44 %
        ((0.4400, 0.4450, 0.4500, 0.4390, 0.4510), "undecided"),
    ],
)
def test_a_spread_is_held_against_the_range_that_the_sentence_names(
    tmp_path: Path, values: tuple[float, ...], word: str
) -> None:
    made = claim("spread", along="strategy", between=[44, 45])
    cells = runs(a=values, b=values)
    result = verdict(made, tmp_path, main=cells)
    assert result.verdict == word
    assert "asked for 44.00 to 45.00" in result.evidence


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
    """All runs are restricted to 41 rounds: 10, 12 and 14 against 30, 41 and 41."""
    quick = {seed: {10 + 2 * seed: 0.3, 40: 0.3} for seed in range(3)}
    slow: dict[int, dict[int, float]] = {0: {30: 0.3, 40: 0.3}, 1: {40: 0.1}, 2: {40: 0.1}}
    cells: list[Cell] = [
        ({"partition": name, "seed": seed}, "done", values)
        for name, result in (("quick", quick), ("slow", slow))
        for seed, values in result.items()
    ]
    rises = claim("order", along="partition", values=["quick", "slow"], way="rises", at="first 0.2")
    result = verdict(rises, tmp_path, main=cells)
    assert result.verdict == "leans towards held"  # 20, 29 and 27: mean 25.3, sd 4.73, t = 9.3
    assert "12 < 37.3" in result.evidence
    remark = "2 of 3 runs do not reach it (slow), means restricted to 41 rounds"
    assert remark in result.evidence
    own = {"quick": 900, "slow": 40}
    diverged: list[Cell] = [
        (labels | {"rounds": own[labels["partition"]]}, "diverged", {5: 0.1})
        for labels, _, _ in cells
    ]
    done = [(labels, "done", {500: 0.3, 900: 0.3}) for labels, _, _ in diverged[:3]]
    result = verdict(rises, tmp_path, main=done + diverged[3:])
    assert "3 of 3 runs diverged (slow), means restricted to 41 rounds" in result.evidence
    never = [(labels, status, {40: 0.1}) for labels, status, _ in cells]
    statistics = verdict(rises, tmp_path, main=never).statistics
    assert statistics == "quick: never (n = 3); slow: never (n = 3)"


def test_holm_by_hand() -> None:
    """0.01 and 0.02 of four are tested at 0.05 / 4 and 0.05 / 3; 0.02 is above that, and ends it."""
    assert holm_levels([0.30, 0.01, 0.02, 0.04]) == pytest.approx(
        [0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3]
    )
    assert holm_levels([0.01, 0.02]) == pytest.approx([0.025, 0.05])
    assert holm_levels([]) == []


def test_intervals_are_those_of_scipy() -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    sample = Sample.of(values)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert sample.interval() == pytest.approx((low, high))
    assert sample.p_value() == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    other = np.array([0.1, 0.5, 0.2])
    assert welch_p(sample, Sample.of(other)) == pytest.approx(
        stats.ttest_ind(values, other, equal_var=False).pvalue
    )


def test_one_of_several_may_be_better() -> None:
    """A clause is true if one contrast is above 0, and false if all are below."""
    up, unclear = Sample(10, 1, 0.1, 10, 0), Sample(10, 0.1, 1, 5, 5)
    down = -up
    assert decide([[[up, down]]]) == ["held"]
    assert decide([[[unclear, down]]]) == ["undecided"]
    assert decide([[[down, down]]]) == ["not held"]
    assert decide([[[up], [down, down]], [[up]]]) == ["not held", "held"]


def test_each_clause_is_tested_at_its_own_level() -> None:
    """By Holm: p-values of 0.02, 2e-6 and 0.04 are tested at 0.05 / 2, 0.05 / 3 and 0.05."""
    second, first, third = (
        Sample(10, -t / 10**0.5, 1.0, above=0, below=10) for t in (2.4, 10.0, 1.98)
    )
    assert decide([[[second], [first]], [[third]]]) == ["not held", "not held"]
