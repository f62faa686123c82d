"""Claims about differences that grow along a chain of settings: each verdict worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.results.claims.judge import judge_paper, with_values
from cohort.results.claims.values import Value
from tests.results.claims.samples import NAMES, Cell, claim, final, matrix, single, verdict

GROWS: dict[str, Any] = {
    "along": "strategy",
    "between": ["ours", "fedavg"],
    "grows": [{"partition": "two"}, {"partition": ["ten", "eleven"]}, {"partition": "hundred"}],
}


def cells(strategy: str, **accuracies: float) -> list[Cell]:
    return [
        final(value, partition=partition, strategy=strategy)
        for partition, value in accuracies.items()
    ]


OURS = cells("ours", two=0.9, ten=0.9, eleven=0.8, hundred=0.7)


def test_each_step_of_a_chain(tmp_path: Path) -> None:
    """The differences are 5, then 10 and 20, then 30: each of the second step is above the first,
    and the third above both."""
    fedavg = cells("fedavg", two=0.85, ten=0.8, eleven=0.6, hundred=0.4)
    result = single(claim("gap", **GROWS), tmp_path, main=OURS + fedavg)
    assert (result.verdict, result.evidence) == (
        "held",
        "ours minus FedAvg: 4 of 4 hold: "
        "90.00 - 80.00 = 10.00 (ten) > 90.00 - 85.00 = 5.00 (two); "
        "80.00 - 60.00 = 20.00 (eleven) > 90.00 - 85.00 = 5.00 (two); "
        "70.00 - 40.00 = 30.00 (hundred) > 90.00 - 80.00 = 10.00 (ten); "
        "70.00 - 40.00 = 30.00 (hundred) > 80.00 - 60.00 = 20.00 (eleven)",
    )


def test_a_doubt_about_one_of_several_values_of_a_cell_is_kept() -> None:
    """Two comparisons need FedAvg's `eleven`: only its value in the last one is doubtful."""
    fedavg = cells("fedavg", two=0.85, ten=0.8, eleven=0.6, hundred=0.4)
    comparisons = claim("gap", **GROWS).planned_comparisons(matrix(main=OURS + fedavg))
    values = [Value(0.5, 1, 1) for comparison in comparisons for _ in comparison.points]
    values[-1] = replace(values[-1], doubtful="misprint")
    assert (
        judge_paper(claim("gap", **GROWS), with_values(comparisons, values), NAMES).doubtful
        == "misprint"
    )


def test_what_is_missing_is_named_with_its_value_along(tmp_path: Path) -> None:
    fedavg = cells("fedavg", two=0.85, ten=0.8, eleven=0.6, hundred=0.4)
    missing = [(labels, "missing", {}) for labels, _, _ in OURS[:1] + fedavg[:1]]
    made = verdict(claim("gap", **GROWS), tmp_path, main=[*missing, *OURS[1:], *fedavg[1:]])
    assert "lacks runs of ours, two / FedAvg, two" in made.evidence


def test_one_step_back_breaks_a_chain(tmp_path: Path) -> None:
    """The last difference, 15, is above 10 but below 20."""
    fedavg = cells("fedavg", two=0.85, ten=0.8, eleven=0.6, hundred=0.55)
    result = single(claim("gap", **GROWS), tmp_path, main=OURS + fedavg)
    assert result.verdict == "not held"
    assert result.evidence.count("✗") == 1
    assert "✗ 70.00 - 55.00 = 15.00 (hundred) < 80.00 - 60.00 = 20.00 (eleven)" in result.evidence


def test_several_others_are_subtracted_one_by_one(tmp_path: Path) -> None:
    """From two to a hundred the lead grows by 25 points over FedAvg and shrinks by 5 over SFL."""
    fedavg, sfl = cells("fedavg", two=0.85, hundred=0.4), cells("sfl", two=0.8, hundred=0.65)
    fields = {
        "between": ["ours", "fedavg", "sfl"],
        "grows": [{"partition": "two"}, {"partition": "hundred"}],
    }
    made = claim("gap", **GROWS | fields)
    result = single(made, tmp_path, main=cells("ours", two=0.9, hundred=0.7) + fedavg + sfl)
    assert (result.verdict, result.evidence) == (
        "not held",
        "ours minus FedAvg or sfl: 1 of 2 hold: "
        "FedAvg: 70.00 - 40.00 = 30.00 (hundred) > 90.00 - 85.00 = 5.00 (two); "
        "✗ sfl: 70.00 - 65.00 = 5.00 (hundred) < 90.00 - 80.00 = 10.00 (two)",
    )


def test_several_chains(tmp_path: Path) -> None:
    """The first grows from 5 to 10 points, the second shrinks from 30 to 20. No step leads from one
    chain to the other, where 5 to 30 would be growth."""
    fedavg = cells("fedavg", two=0.85, ten=0.8, eleven=0.6, hundred=0.4)
    chains = [
        [{"partition": "two"}, {"partition": "ten"}],
        [{"partition": "hundred"}, {"partition": "eleven"}],
    ]
    result = single(claim("gap", **GROWS | {"grows": chains}), tmp_path, main=OURS + fedavg)
    assert (result.verdict, result.evidence) == (
        "not held",
        "ours minus FedAvg: 1 of 2 hold: "
        "90.00 - 80.00 = 10.00 (ten) > 90.00 - 85.00 = 5.00 (two); "
        "✗ 80.00 - 60.00 = 20.00 (eleven) < 70.00 - 40.00 = 30.00 (hundred)",
    )


@pytest.mark.parametrize(
    "grows",
    [
        [{"partition": "two"}],
        [GROWS["grows"], {"partition": "two"}],
        [{"partition": "two"}, GROWS["grows"]],
    ],
)
def test_a_chain_has_two_settings_and_is_not_mixed_with_others(grows: list[Any]) -> None:
    with pytest.raises(UserError, match="at least two settings, or lists of them"):
        claim("gap", **GROWS | {"grows": grows}).check()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"larger": {"partition": "two"}},
        {"larger": {"partition": "two"}, "than": {"partition": "ten"}, "grows": GROWS["grows"]},
    ],
)
def test_it_needs_two_settings_or_a_chain(fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"needs larger and than, .* or else grows"):
        claim("gap", **GROWS | {"grows": None} | fields).check()
