"""Cells of masked labels: what is refused, what is skipped without TenSEAL, and estimates."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.plan.cost import memory_mb, round_seconds
from cohort.training.procedures import parse_procedure
from tests.plan.test_cost import BASE, cell_with

PlanOf = Callable[..., Plan]
SETTINGS = {
    **{"dataset": "digits", "model": "small-mlp", "clients": 5, "cohort": 5, "batch": 16},
    **{"lr": 0.1, "procedure": "masked-labels", "rounds": 1},
}
AXES: dict[str, Any] = {"axes": {"partition": ["covering-5"], "J": ["J1e"], "strategy": ["fedavg"]}}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rounds": 2}, "has a single round: rounds is 2, but must be 1"),
        ({"cohort": 3}, "asks all 5 clients in every round: cohort is 3"),
        ({"participation": "dropout-0.3"}, "has no use for the participation 'dropout-0.3'"),
        ({"strategy": "loss", "reserve": 10}, "has no use for the selector 'loss'"),
        (
            {"evaluate_local": 1},
            "trains no model that could be evaluated: leave out evaluate_local",
        ),
        ({"evaluate_own": 1}, "leave out evaluate_own"),
        ({"evaluate_next": 1}, "leave out evaluate_next"),
    ],
)
def test_settings_that_make_no_sense(changes: dict[str, Any], sentence: str, plan_of: PlanOf):
    axes = AXES["axes"] | {key: [value] for key, value in changes.items()}
    with pytest.raises(UserError, match="procedure 'masked-labels' ") as caught:
        plan_of({"axes": axes}, settings=SETTINGS)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_estimates_of_the_largest_cell_of_the_paper():
    """20 clients of 50 labels send 2,000 ciphertexts of 331 kB, which the server keeps, and need
    another 10 MB each for their keys (the whole process took 1,130 MB). They need
    100,000 comparisons for placeholders and about 30,000 for the list, of 3 to 4 ms each."""
    overhead = parse_procedure("masked-labels").overhead(clients=20, classes=100)
    assert 0.331 * 2000 + 200 < overhead.megabytes < 1130
    assert 130_000 * 3e-3 < overhead.seconds < 130_000 * 4e-3
    facts = {"shape": [1, 8, 8], "classes": 100, "train": 1000, "test": 100}
    cell = cell_with(BASE | SETTINGS | {"clients": 20, "cohort": 20, "J": "J1e"})
    plain = replace(cell, settings=replace(cell.settings, procedure="federated"))
    assert memory_mb(cell, facts) == memory_mb(plain, facts) + overhead.megabytes
    assert overhead.seconds < round_seconds(cell, facts) < overhead.seconds + 5


def without_tenseal(monkeypatch: pytest.MonkeyPatch) -> None:
    result = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tenseal" else result(name)
    )


def test_without_tenseal_cells_are_skipped_with_one_line(
    plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch
):
    axes = AXES["axes"] | {"seed": [0, 1]}
    assert plan_of({"axes": axes}, settings=SETTINGS).notes == []
    without_tenseal(monkeypatch)
    plan = plan_of({"axes": axes}, settings=SETTINGS)
    assert plan.digests("study") == []
    assert plan.notes == [
        "study.main: 2 of 2 cells skipped: procedure 'masked-labels' needs the package tenseal, "
        "which is not installed; pip install tenseal"
    ]
