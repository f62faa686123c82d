"""Claims about differences, and about numbers: each verdict worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results.claims import CLAIMS
from tests.results.claims.samples import Cell, claim, final, matrix, single

PAIRS = {"along": "strategy", "pairs": [["b", "a"]]}


def cells(**values: float) -> list[Cell]:
    """A cell for each strategy with its accuracy."""
    return [final(value, strategy=name) for name, value in values.items()]


def line(partition: str, *values: float) -> list[Cell]:
    """Strategies a, b on a partition."""
    return [
        final(value, strategy=name, partition=partition)
        for name, value in zip("ab", values, strict=True)
    ]


@pytest.mark.parametrize(
    ("margin", "word", "asked"),
    [
        (0.0, "held", ""),
        (6.0, "held", ", asked for a difference above 6"),
        (7.0, "tie", ", asked for a difference above 7"),
        (-1.0, "held", ", with a tolerance of 1"),
    ],
)
def test_a_gain_is_larger_than_a_margin(
    tmp_path: Path, margin: float, word: str, asked: str
) -> None:
    """56.5 - 49.5 is 7, and neither more nor less than 7."""
    result = single(claim("gain", **PAIRS, margin=margin), tmp_path, main=cells(a=0.495, b=0.565))
    assert result.verdict == word
    assert (
        result.evidence
        == ("" if word == "held" else "= ") + f"56.50 - 49.50 = 7.00 (b minus a){asked}"
    )


def test_a_loss_within_the_margin(tmp_path: Path) -> None:
    lost = cells(a=0.5, b=0.495)
    assert single(claim("gain", **PAIRS), tmp_path, main=lost).verdict == "not held"
    assert single(claim("gain", **PAIRS, margin=-1), tmp_path, main=lost).verdict == "held"


def test_never_minus_never_is_a_tie(tmp_path: Path) -> None:
    never = cells(a=0.1, b=0.2)
    result = single(claim("gain", **PAIRS, at="first 0.9"), tmp_path, main=never)
    assert (result.verdict, result.evidence) == ("tie", "= never - never = 0 (b minus a)")
    gap = {"along": "strategy", "between": ["b", "a"], "at": "first 0.9"}
    steps = {"larger": {"partition": "x"}, "than": {"partition": "y"}}
    both = [*line("x", 0.1, 0.2), *line("y", 0.1, 0.2)]
    assert single(claim("gap", **gap, **steps), tmp_path, main=both).verdict == "tie"


def test_in_each_setting(tmp_path: Path) -> None:
    both = [*line("x", 0.1, 0.2), *line("y", 0.3, 0.2)]
    result = single(claim("gain", **PAIRS), tmp_path, main=both)
    assert (
        result.evidence
        == "1 of 2 hold: x: 20.00 - 10.00 = 10.00 (b minus a); ✗ y: 20.00 - 30.00 = -10.00 (b minus a)"
    )
    assert (
        single(claim("gain", **PAIRS, given={"partition": "x"}), tmp_path, main=both).verdict
        == "held"
    )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"along": "strategy", "pairs": [["b", "c"]]},
            "pairs names strategy c, which is not on the axis of main",
        ),
    ],
)
def test_unknown_values_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        claim("gain", **fields).planned_comparisons(matrix(main=cells(a=0.1, b=0.2)))


def test_a_setting_without_one_of_a_pair() -> None:
    some = [*cells(a=0.1, b=0.2), final(0.3, strategy="a", partition="y")]
    with pytest.raises(
        UserError,
        match="main has no cell with strategy b and J J4, partition y; say in given which are meant",
    ):
        claim("gain", **PAIRS).planned_comparisons(matrix(main=some))


@pytest.mark.parametrize(
    ("bounds", "value", "word", "evidence"),
    [
        ({"above": 30}, 0.31, "held", "31.00 (main) > 30"),
        ({"above": 31}, 0.31, "tie", "= 31.00 (main) = 31"),
        ({"below": 30}, 0.31, "not held", "✗ 31.00 (main) > 30"),
        ({"above": 30, "below": 32}, 0.31, "held", "31.00 (main) > 30 < 32"),
    ],
)
def test_a_bound_is_strict(
    tmp_path: Path, bounds: dict[str, float], value: float, word: str, evidence: str
) -> None:
    result = single(claim("bound", **bounds), tmp_path, main=[final(value)])
    assert (result.verdict, result.evidence) == (word, evidence)


def test_a_bound_of_every_setting(tmp_path: Path) -> None:
    result = single(claim("bound", above=20), tmp_path, main=cells(a=0.1, b=0.3))
    assert (result.verdict, result.evidence) == (
        "not held",
        "1 of 2 hold: ✗ 10.00 (a) < 20; 30.00 (b) > 20",
    )


def test_a_bound_needs_a_number() -> None:
    with pytest.raises(
        UserError, match="it needs above or below, the number that the metric is compared with"
    ):
        claim("bound").check()


def test_schemas() -> None:
    assert {"bound", "gain"} <= set(CLAIMS)
    assert schema_of(CLAIMS["gain"])["properties"]["pairs"]["items"]["maxItems"] == 2
