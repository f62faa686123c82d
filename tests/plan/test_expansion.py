"""Axes, pairs, includes, excludes and scales: which cells a study means."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohort.plan import Plan
from cohort.plan.matrix import combinations, scaled_values

PlanOf = Callable[..., Plan]
AXES = {"partition": ["iid", "classes-2"], "J": ["J4", "J8"], "strategy": ["fedavg", "loss"]}


def labels(plan: Plan, *columns: str) -> list[tuple[Any, ...]]:
    rows = plan.study("study").experiments["main"].rows
    return [tuple(row.labels[column] for column in columns) for row in rows]


def settings(plan: Plan, *keys: str) -> list[tuple[Any, ...]]:
    every = [cell.plain_settings() for cell in plan.cells.values()]
    return [tuple(values[key] for key in keys) for values in every]


@given(
    st.dictionaries(
        st.sampled_from(["J", "seed", "lr", "batch"]),
        st.lists(st.integers(), min_size=1, max_size=4, unique=True),
        min_size=1,
    )
)
def test_expansion_is_the_product_without_duplicates(axes: dict[str, list[int]]):
    cells = [tuple(cell.items()) for cell in combinations({"axes": axes})]
    assert len(cells) == len(set(cells)) == math.prod(map(len, axes.values()))


@pytest.mark.parametrize(
    ("block", "columns", "expected"),
    [
        (
            {"axes": {"J": ["J8", "J4"], "seed": [1, 0]}},
            ("J", "seed"),
            [("J8", 1), ("J8", 0), ("J4", 1), ("J4", 0)],  # in the order of the study
        ),
        (
            {"axes": {"seed": [0, 1]}, "paired": [{"lr": [0.1, 0.2], "rounds": [50, 100]}]},
            ("seed", "lr", "rounds"),
            [(0, 0.1, 50), (0, 0.2, 100), (1, 0.1, 50), (1, 0.2, 100)],
        ),
        (
            {
                "axes": {"partition": ["iid", "classes-2"], "J": ["J4", "J8"]},
                "exclude": [{"partition": "iid", "J": ["J8"]}],
                "include": [{"partition": "dir-0.5", "J": "J16"}],
            },
            ("partition", "J"),
            [("iid", "J4"), ("classes-2", "J4"), ("classes-2", "J8"), ("dir-0.5", "J16")],
        ),
        (
            {"axes": {"strategy": ["fedentopt"], "selector.buffer": [0.25, 0.5]}},
            ("strategy", "selector.buffer"),
            [("fedentopt", 0.25), ("fedentopt", 0.5)],
        ),
    ],
)
def test_which_cells(plan_of: PlanOf, block: dict[str, Any], columns: Any, expected: Any):
    assert labels(plan_of(block), *columns) == expected


def test_a_selectors_parameter_reaches_the_selector(plan_of: PlanOf):
    plan = plan_of({"axes": {"strategy": ["fedentopt"], "selector.buffer": [0.25, 0.5]}})
    assert [selector["buffer"] for (selector,) in settings(plan, "selector")] == [0.25, 0.5]


@pytest.mark.parametrize(
    ("axes", "figure", "config", "expected"),
    [
        (
            AXES,  # each panel and each hue once, but not each hue in each panel
            {"kind": "bars", "x": "J", "columns": "partition", "hue": "strategy"},
            {},
            [("iid", "fedavg", 0), ("iid", "loss", 0), ("classes-2", "fedavg", 0)],
        ),
        (
            AXES | {"J": ["J4"]},  # each strategy, with the seeds that are asked for
            None,
            {"seeds": 2},
            [("iid", "fedavg", 0), ("iid", "fedavg", 1), ("iid", "loss", 0), ("iid", "loss", 1)],
        ),
        (
            AXES | {"strategy": ["fedavg"]},  # each combination of rows and columns
            {"kind": "curves", "rows": "J", "columns": "partition"},
            {},
            [("iid", "fedavg", 0)] * 2 + [("classes-2", "fedavg", 0)] * 2,
        ),
    ],
)
def test_smoke_keeps(plan_of: PlanOf, axes: Any, figure: Any, config: Any, expected: Any):
    spec = {"experiment": "main", "metric": "test_accuracy"}
    figures = {"fig1": spec | figure} if figure else {}
    block = {"axes": axes | {"seed": [0, 1]}}
    plan = plan_of(block, config={"scale": "smoke"} | config, figures=figures)
    assert labels(plan, "partition", "strategy", "seed") == expected


def test_a_scale_thins_the_evaluation_plan_alike():
    values = {
        **{"rounds": 2000, "lr_decay": 1.0, "schedule": "step-50", "evaluate_holdout": 10},
        **{"procedure": "stratified-hybrid-40", "evaluate_next": 5, "evaluate_local": 0},
        **{"evaluate_every": "1 until 10, 10 until 400, 50", "evaluate_own": 3.0},
        "evaluators": "drift 10; top5 50, last 10",
    }
    scaled = scaled_values(values, {"rounds": 0.2})
    assert {key: value for key, value in scaled.items() if scaled[key] != values[key]} == {
        **{"rounds": 400, "schedule": "step-10", "procedure": "stratified-hybrid-8"},
        **{"evaluate_every": "1 until 2, 2 until 80, 10", "evaluate_holdout": 2},
        **{"evaluate_next": 1, "evaluate_own": 1, "evaluators": "drift 2; top5 10, last 10"},
    }
    assert scaled_values(values, {}) == values


def test_a_study_and_an_experiment_say_what_a_scale_means_to_them(plan_of: PlanOf):
    """The experiment's word counts before the study's, and that before config/scales.yaml's."""
    changes = {"reduced": {"rounds": 0.1, "without": [{"J": "J8"}]}}
    block = {"axes": {"J": ["J4", "J8"], "seed": [0]}, "scales": changes}
    scales = {"reduced": {"rounds": 0.5, "samples": 0.7}}
    plan = plan_of(block, config={"scale": "reduced"}, scales=scales)
    assert settings(plan, "J", "rounds", "samples") == [("J4", 10, 0.7)]
    assert plan.notes == ["study.main: 1 of 2 cells at this scale, without J J8"]
    assert len(plan_of(block, scales=scales).cells) == 2
