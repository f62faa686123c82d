"""What a study says of all cells with some values, whichever experiment they are in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cohort.plan import Plan

PlanOf = Callable[..., Plan]
BUFFER = {
    "given": {"strategy": "fedentopt", "partition": ["classes-2", "classes-3"]},
    "settings": {"selector.buffer": 0.7},
}
IID = {"given": {"partition": "iid"}}
AXES = {"partition": ["iid", "classes-2"], "strategy": ["fedavg", "fedentopt"]}


def buffers(plan: Plan) -> dict[tuple[str, str], Any]:
    """The buffer of each cell, None where its selector has none."""
    cells = (cell.plain_settings() for cell in plan.cells.values())
    return {(cell["partition"], cell["strategy"]): cell["selector"].get("buffer") for cell in cells}


def test_a_parameter_of_a_strategy_on_some_partitions(plan_of: PlanOf):
    plan = plan_of({"axes": AXES}, overrides=[BUFFER])
    assert buffers(plan) == {
        ("iid", "fedavg"): None,
        ("iid", "fedentopt"): 0.5,
        ("classes-2", "fedavg"): None,
        ("classes-2", "fedentopt"): 0.7,
    }


def test_a_cell_is_the_one_that_an_axis_makes(plan_of: PlanOf):
    """An override is no axis, so figures need not keep it apart, but the digest is the same."""
    overridden = plan_of(
        {"axes": {"partition": ["classes-2"], "strategy": ["fedentopt"]}}, overrides=[BUFFER]
    )
    (row,) = overridden.study("study").experiments["main"].rows
    assert "selector.buffer" not in row.labels
    axes = {"partition": ["classes-2"], "strategy": ["fedentopt"], "selector.buffer": [0.7]}
    assert set(plan_of({"axes": axes}).cells) == {row.digest}


def test_the_studys_settings_count_less_and_the_experiments_own_more(plan_of: PlanOf):
    overrides = [
        {"given": {"partition": "classes-2"}, "settings": {"rounds": 50, "batch": 8, "cohort": 5}}
    ]
    block = {"axes": {"partition": ["classes-2"], "cohort": [2]}, "settings": {"batch": 32}}
    (cell,) = plan_of(block, overrides=overrides).cells.values()
    assert [cell.plain_settings()[key] for key in ("rounds", "batch", "cohort")] == [50, 32, 2]


def test_the_later_of_two_counts(plan_of: PlanOf):
    overrides = [
        {"given": given, "settings": {"rounds": rounds}}
        for given, rounds in (({"seed": 0}, 30), ({"partition": "iid"}, 40))
    ]
    assert [
        cell.plain_settings()["rounds"] for cell in plan_of({}, overrides=overrides).cells.values()
    ] == [40]
