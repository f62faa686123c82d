"""Claims on average over settings: p-values of a few settings worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from tests.results.claims.samples import Cell, claim, final, matrix, single, verdict

AVERAGE = claim("average", along="strategy", pairs=[["b", "a"]])


def cells(differences: Sequence[float], seeds: int = 1) -> list[Cell]:
    """Strategies a and b in a setting for each difference, in points, around which seeds vary by a
    tenth of a point, which leaves means as they are where their number is odd."""
    rows = []
    for index, difference in enumerate(differences):
        for seed in range(seeds):
            base = 0.3 + 0.05 * index + 0.01 * seed
            more = difference / 100 + 0.001 * (seed - seeds // 2)
            labels = {"partition": f"classes-{index + 1}", "seed": seed}
            rows.append(final(base, strategy="a", **labels))
            rows.append(final(base + more, strategy="b", **labels))
    return rows


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(
    ("differences", "word", "p_value"),
    [
        ((1, 2, 3, 4, 5), "held", "0.031"),  # 1 of 32 choices of signs
        ((-1, 2, 3, 4, 5, 6), "undecided", "0.11"),  # 7 of 64 have 5 or more above 0
        ((-1, 2, 3, 4, 5, 6, 7, 8), "held", "0.035"),  # 9 of 256 have 7 or more above 0
        ((1, 2, 3, 4, 5, -6), "undecided", "0.22"),  # 14 of 64 have a rank sum of 15 or more
        ((-1, -2, -3, -4, -5), "not held", "1"),
        ((1, -2, 3, -4, 5), "undecided", "0.5"),
    ],
)
def test_settings_are_what_is_counted(
    tmp_path: Path, differences: Sequence[float], word: str, p_value: str, seeds: int
) -> None:
    """One seed or three: the word is that of the settings' means."""
    result = verdict(AVERAGE, tmp_path, main=cells(differences, seeds))
    above = sum(difference > 0 for difference in differences)
    mean = sum(differences) / len(differences)
    assert result.verdict == word
    text = (
        f"b minus a {mean:.2f} on average, "
        f"larger in {above} of {len(differences)} settings (p = {p_value})"
    )
    assert text in result.evidence
    assert f"above 0 in {above} of {len(differences)} settings]" in result.evidence
    assert result.gap == ""  # more seeds are no more settings


def test_the_bounds_are_those_of_the_test(tmp_path: Path) -> None:
    """The lower bound at 5 % is the lowest mean of two differences, as 1 of 32 is all it rejects."""
    result = verdict(AVERAGE, tmp_path, main=cells((1, 2, 3, 4, 5)))
    assert "[+3.00, +1.00 to +5.00, above 0 in 5 of 5 settings]" in result.evidence
    both = claim("average", along="strategy", pairs=[["b", "a"], ["a", "b"]])
    result = verdict(both, tmp_path, main=cells((1, 2, 3, 4, 5)))
    assert "[+3.00, +1.00 to +∞, above 0 in 5 of 5 settings]" in result.evidence  # 1/32 > 2.5 %


def test_consistently_is_another_claim(tmp_path: Path) -> None:
    """One setting of eight goes the other way."""
    main = cells((-1, 2, 3, 4, 5, 6, 7, 8), seeds=5)
    consistently = claim("gain", along="strategy", pairs=[["b", "a"]])
    assert verdict(consistently, tmp_path, main=main).verdict != "held"
    assert verdict(AVERAGE, tmp_path, main=main).verdict == "held"
    assert single(consistently, tmp_path, main=main).verdict == "not held"
    assert single(AVERAGE, tmp_path, main=main).verdict == "held"


def test_a_papers_values_are_tested_too(tmp_path: Path) -> None:
    result = single(AVERAGE, tmp_path, main=cells((1, -2, 3, -4, 5)))
    assert result.verdict == "undecided"
    assert single(AVERAGE, tmp_path, main=cells((-1, -2, -3, -4, -5))).verdict == "not held"


def test_a_margin(tmp_path: Path) -> None:
    main = cells((1, 2, 3, 4, 5))
    more = claim("average", along="strategy", pairs=[["b", "a"]], margin=0.5)
    result = verdict(more, tmp_path, main=main)
    assert result.verdict == "held"
    assert (
        "b minus a 3.00 on average, asked for a difference above 0.5, larger in 5 of 5"
        in result.evidence
    )
    much = claim("average", along="strategy", pairs=[["b", "a"]], margin=4)
    assert verdict(much, tmp_path, main=main).verdict == "undecided"


def test_every_pair_must_be_ahead(tmp_path: Path) -> None:
    """All of six settings lie below 0, one case of 64: enough for Holm's 2.5 %."""
    both = cells((1, 2, 3, 4, 5, 6))
    both += [
        (labels | {"strategy": "c"}, status, {10: values[10] + 0.1})
        for labels, status, values in both
        if labels["strategy"] == "b"
    ]
    pairs = claim("average", along="strategy", pairs=[["b", "a"], ["b", "c"]])
    result = verdict(pairs, tmp_path, main=both)
    assert result.verdict == "not held"
    assert result.evidence.startswith("1 of 2 hold: b minus a 3.50")


def test_a_diverged_run_counts_with_the_worst_value(tmp_path: Path) -> None:
    main = cells((1, 2, 3, 4, 5))
    labels, _, values = main[-1]
    result = verdict(AVERAGE, tmp_path, main=[*main[:-1], (labels, "diverged", values)])
    assert result.verdict == "undecided"
    assert "larger in 4 of 5 settings (p = 0.31)" in result.evidence  # 10 of 32: the largest is not


def test_a_missing_setting_leaves_it_open(tmp_path: Path) -> None:
    main = cells((1, 2, 3, 4, 5, 6))
    labels, _, _ = main[-1]
    result = verdict(AVERAGE, tmp_path, main=[*main[:-1], (labels, "missing", {})])
    assert result.verdict == "not enough runs"
    assert "lacks runs of classes-6, b" in result.evidence


def test_too_few_settings() -> None:
    with pytest.raises(UserError, match="4 settings have together; an average takes at least 5"):
        AVERAGE.planned_comparisons(matrix(main=cells((1, 2, 3, 4))))
