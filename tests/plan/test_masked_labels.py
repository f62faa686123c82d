"""Cells of masked labels: what is refused, what is skipped without TenSEAL, and estimates."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

from cohort.plan import Plan

PlanOf = Callable[..., Plan]
SETTINGS = {
    **{"dataset": "digits", "model": "small-mlp", "clients": 5, "cohort": 5, "batch": 16},
    **{"lr": 0.1, "procedure": "masked-labels", "rounds": 1},
}
AXES: dict[str, Any] = {"axes": {"partition": ["covering-5"], "J": ["J1e"], "strategy": ["fedavg"]}}


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
