"""Evaluators that a study names: their plans, what they cost, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.plan.cost import operations
from cohort.training.cell import Cell
from cohort.training.evaluators import EVALUATORS, Evaluator, SampleCounts

PlanOf = Callable[..., Plan]


@dataclass(frozen=True, kw_only=True)
class Drift(Evaluator):
    """Evaluates three samples, unless Adam trains."""

    name: ClassVar[str] = "drift"

    def check(self, cell: Cell) -> None:
        if cell.settings.optimizer == "adam":
            raise ValueError("drift needs plain SGD")

    def samples(self, counts: SampleCounts) -> float:
        return 3


@pytest.fixture(autouse=True)
def drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVALUATORS, "drift", Drift)


def cell_with(plan_of: PlanOf, **settings: Any) -> Cell:
    plan = plan_of({"axes": {}, "settings": {"rounds": 40} | settings})
    (cell,) = plan.cells.values()
    return cell


def test_its_plan_is_spelled_out_and_costs_what_it_says(plan_of: PlanOf):
    """Rounds 10, 20 and 30, the last ten and so each of 31 to 40, make 13 evaluations of 3 samples."""
    without = cell_with(plan_of)
    cell = cell_with(plan_of, evaluators="drift 10, last 10")
    assert without.settings.evaluators == "" and cell.settings.evaluators == "drift 10 until 30, 1"
    info = {"shape": [1, 8, 8], "classes": 10, "train": 1437, "test": 360}
    more = operations(cell, info) - operations(without, info)
    assert cell.settings.model == "small-mlp"  # 64 * 64 + 64 * 10 products
    assert more == pytest.approx(2 * 13 * 3 * (64 * 64 + 64 * 10))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"evaluators": "drfit 10"}, "evaluators: 'drfit' is not known; did you mean 'drift'?"),
        ({"evaluators": "test 10"}, "evaluators: 'test' is not known (allowed: drift)"),
        ({"evaluators": "drift"}, "does not look like further evaluators with their rounds"),
        ({"evaluators": "drift 2", "optimizer": "adam"}, "drift needs plain SGD"),
    ],
)
def test_what_is_refused(settings: dict[str, str], sentence: str, plan_of: PlanOf):
    with pytest.raises(UserError) as caught:
        cell_with(plan_of, **settings)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
