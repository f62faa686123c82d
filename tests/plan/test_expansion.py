"""Axes, pairs, includes, excludes and scales: which cells a study means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.plan.axes import combinations
from cohort.plan.scale import scaled_values, thinned_cells

PlanOf = Callable[..., Plan]


def labels(plan: Plan, *columns: str) -> list[tuple[Any, ...]]:
    return [
        tuple(row.labels[column] for column in columns)
        for row in plan.study("study").experiments["main"].rows
    ]


def test_product_in_the_order_of_the_study(plan_of: PlanOf):
    plan = plan_of({"axes": {"J": ["J8", "J4"], "seed": [1, 0]}})
    assert labels(plan, "J", "seed") == [("J8", 1), ("J8", 0), ("J4", 1), ("J4", 0)]


def test_paired_axes_move_together(plan_of: PlanOf):
    block = {"axes": {"seed": [0, 1]}, "paired": [{"lr": [0.1, 0.2], "rounds": [50, 100]}]}
    assert labels(plan_of(block), "seed", "lr", "rounds") == [
        (0, 0.1, 50),
        (0, 0.2, 100),
        (1, 0.1, 50),
        (1, 0.2, 100),
    ]


def test_exclude_and_include(plan_of: PlanOf):
    block = {
        "axes": {"partition": ["iid", "classes-2"], "J": ["J4", "J8"], "seed": [0, 1]},
        "exclude": [{"partition": "iid", "J": ["J8"]}],
        "include": [{"partition": "dir-0.5", "J": "J16"}],
    }
    planned = labels(plan_of(block), "partition", "J", "seed")
    assert (
        ("iid", "J8", 0) not in planned
        and ("iid", "J4", 0) in planned
        and ("classes-2", "J8", 1) in planned
    )
    assert [row for row in planned if row[0] == "dir-0.5"] == [
        ("dir-0.5", "J16", 0),
        ("dir-0.5", "J16", 1),
    ]
    assert len(planned) == 6 + 2


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        (
            {"paired": [{"lr": [0.1, 0.2], "rounds": [50]}]},
            "must be equally long (lr: 2, rounds: 1)",
        ),
        ({"paired": [{"J": ["J4"], "lr": [0.1]}]}, "'J' is an axis twice"),
        ({"exclude": [{"J": "J8"}]}, "exclude names J 'J8', which is not on the axis"),
        ({"exclude": [{"lr": 0.1}]}, "exclude names 'lr', which is not an axis here"),
        (
            {"paired": [{"lr": [0.1], "rounds": [5]}], "include": [{"lr": 0.3}]},
            "must give them all, for they are paired",
        ),
    ],
)
def test_mistakes_in_one_sentence(plan_of: PlanOf, block: dict[str, Any], sentence: str):
    with pytest.raises(UserError) as caught:
        plan_of(block)
    assert sentence in str(caught.value) and str(caught.value).startswith(
        "config/studies/study.yaml: experiments.main"
    )


def test_a_selectors_parameter_is_an_axis(plan_of: PlanOf):
    plan = plan_of({"axes": {"strategy": ["fedentopt"], "selector.buffer": [0.25, 0.5]}})
    assert labels(plan, "strategy", "selector.buffer") == [("fedentopt", 0.25), ("fedentopt", 0.5)]
    assert [cell.plain_settings()["selector"]["buffer"] for cell in plan.cells.values()] == [
        0.25,
        0.5,
    ]


def test_a_parameter_that_the_strategy_lacks(plan_of: PlanOf):
    with pytest.raises(
        UserError, match="strategy fedavg, selector: the file has an unknown key 'buffer'"
    ):
        plan_of({"axes": {"selector.buffer": [0.25]}})


def test_cells_that_two_experiments_share_are_one(plan_of: PlanOf):
    axes = {"partition": ["iid"], "J": ["J4"], "strategy": ["fedavg"]}
    blocks = {"main": {"axes": axes | {"seed": [0, 1]}}, "more": {"axes": axes | {"seed": [1, 2]}}}
    plan = plan_of({}, experiments=blocks)
    assert len(plan.cells) == 3 and len(plan.digests("study")) == 3


def test_scale_shortens_and_stretches_the_decay(plan_of: PlanOf):
    plan = plan_of(
        {"settings": {"lr_decay": 0.98, "evaluate_every": 10}, "axes": {"seed": [3, 4]}},
        config={"scale": "reduced"},
    )
    (cell,) = plan.cells.values()
    assert cell.plain_settings()["seed"] == 3
    assert (
        cell.plain_settings()["rounds"],
        cell.plain_settings()["evaluate_every"],
        cell.plain_settings()["samples"],
    ) == (
        20,
        2,
        0.5,
    )
    assert cell.plain_settings()["lr_decay"] ** 20 == pytest.approx(0.98**100, rel=1e-12)
    assert plan.notes == ["study.main: 1 of 2 cells at this scale"]


def test_a_scale_may_leave_the_decay_as_it_is(plan_of: PlanOf):
    block = {
        "settings": {"lr_decay": 0.98},
        "scales": {"reduced": {"rounds": 0.5, "stretched": False}},
    }
    (cell,) = plan_of(block, config={"scale": "reduced"}).cells.values()
    assert (cell.plain_settings()["rounds"], cell.plain_settings()["lr_decay"]) == (50, 0.98)


def test_smoke_keeps_a_cell_for_each_panel_and_hue(plan_of: PlanOf):
    axes = {
        "partition": ["iid", "classes-2"],
        "J": ["J4", "J8"],
        "strategy": ["fedavg", "loss"],
        "seed": [0, 1],
    }
    figure = {
        "experiment": "main",
        "kind": "bars",
        "metric": "test_accuracy",
        "x": "J",
        "columns": "partition",
        "hue": "strategy",
    }
    plan = plan_of({"axes": axes}, config={"scale": "smoke"}, figures={"fig1": figure})
    assert labels(plan, "partition", "strategy") == [
        ("iid", "fedavg"),
        ("iid", "loss"),
        ("classes-2", "fedavg"),
    ]
    assert {row[0] for row in labels(plan, "J")} == {"J4"}


def test_smoke_keeps_every_strategy_with_the_seeds_that_are_asked_for(plan_of: PlanOf):
    axes = {"partition": ["iid", "classes-2"], "strategy": ["fedavg", "loss"], "seed": [0, 1]}
    plan = plan_of({"axes": axes}, config={"scale": "smoke", "seeds": 2})
    assert labels(plan, "partition", "strategy", "seed") == [
        ("iid", "fedavg", 0),
        ("iid", "fedavg", 1),
        ("iid", "loss", 0),
        ("iid", "loss", 1),
    ]


def test_smoke_keeps_a_cell_for_each_combination_of_rows_and_columns(plan_of: PlanOf):
    axes = {
        "partition": ["iid", "classes-2"],
        "J": ["J4", "J8"],
        "strategy": ["fedavg"],
        "seed": [0, 1],
    }
    figure = {
        "experiment": "main",
        "kind": "curves",
        "metric": "test_accuracy",
        "rows": "J",
        "columns": "partition",
    }
    plan = plan_of({"axes": axes}, config={"scale": "smoke"}, figures={"fig1": figure})
    assert len(labels(plan, "partition", "J")) == 4


def test_thinned_without_a_figure_keeps_one():
    assert thinned_cells([{"a": 1}, {"a": 2}], []) == [{"a": 1}]


def test_a_scale_thins_the_evaluation_plan_alike():
    values = {
        "rounds": 2000,
        "lr_decay": 1.0,
        "schedule": "step-50",
        "procedure": "stratified-hybrid-40",
        "evaluate_every": "1 until 10, 10 until 400, 50",
        "evaluate_holdout": 10,
        "evaluate_next": 5,
        "evaluate_local": 0,
        "evaluate_own": 0,
        "evaluators": "drift 10; top5 50, last 10",
    }
    assert scaled_values(values, {"rounds": 0.2})["evaluators"] == "drift 2; top5 10, last 10"
    assert scaled_values(values, {"rounds": 0.2})["evaluate_every"] == "1 until 2, 2 until 80, 10"
    assert scaled_values(values, {"rounds": 0.2})["evaluate_holdout"] == 2
    assert scaled_values(values, {"rounds": 0.2})["evaluate_next"] == 1
    assert scaled_values(values, {"rounds": 0.2})["evaluate_local"] == 0
    assert scaled_values(values, {"rounds": 0.2})["schedule"] == "step-10"
    assert scaled_values(values, {"rounds": 0.2})["procedure"] == "stratified-hybrid-8"
    assert scaled_values(values | {"evaluate_every": 50}, {"rounds": 0.2})["evaluate_every"] == 10
    assert scaled_values(values | {"evaluate_every": 3}, {"rounds": 0.2})["evaluate_every"] == 1


def test_the_last_ten_rounds_are_ten_at_every_scale(plan_of: PlanOf):
    """Every tenth of 100 rounds, and 91 to 100; at `reduced`, of 20, every second and 11 to 20."""
    every = {"settings": {"evaluate_every": "10, last 10"}}
    plans = [
        next(iter(plan_of(every, config={"scale": scale}).cells.values()))
        for scale in ("full", "reduced")
    ]
    assert [plan.plain_settings()["evaluate_every"] for plan in plans] == [
        "10 until 90, 1",
        "2 until 10, 1",
    ]
    written_out = plan_of({"settings": {"evaluate_every": "10 until 90, 1"}})
    assert set(written_out.cells) == {plans[0].digest}


def test_a_scale_may_mean_something_else_for_some_cells(plan_of: PlanOf):
    """The experiment's words for all count before the study's, but what is said of cells in particular counts most."""
    slow = {"given": {"model": "small-cnn"}, "rounds": 0.02, "samples": 0.3}
    block = {"axes": {"model": ["small-mlp", "small-cnn"]}, "scales": {"reduced": {"rounds": 0.4}}}
    plan = plan_of(
        block, config={"scale": "reduced"}, scales={"reduced": {"samples": 0.7, "except": [slow]}}
    )
    results = {
        cell.plain_settings()["model"]: (
            cell.plain_settings()["rounds"],
            cell.plain_settings()["samples"],
        )
        for cell in plan.cells.values()
    }
    assert results == {"small-mlp": (40, 0.7), "small-cnn": (2, 0.3)}


def test_full_scale_changes_nothing():
    values = {"rounds": 7, "lr_decay": 0.9, "evaluate_every": 3, "samples": 1.0}
    assert scaled_values(values, {}) == values


@given(
    st.dictionaries(
        st.sampled_from(["J", "seed", "lr", "batch"]),
        st.lists(st.integers(), min_size=1, max_size=4, unique=True),
        min_size=1,
    )
)
def test_expansion_is_the_product_without_duplicates(axes: dict[str, list[int]]):
    results = [tuple(cell.items()) for cell in combinations({"axes": axes})]
    size = 1
    for values in axes.values():
        size *= len(values)
    assert len(results) == len(set(results)) == size
    assert results == [tuple(cell.items()) for cell in combinations({"axes": axes})]


def test_a_study_and_an_experiment_say_what_a_scale_means_to_them(plan_of: PlanOf):
    """The experiment's word counts before the study's, and that before config/scales.yaml's (0.2 of the rounds, 0.5 of the samples)."""
    block = {
        "axes": {"J": ["J4", "J8"], "seed": [0]},
        "scales": {"reduced": {"rounds": 0.1, "without": [{"J": "J8"}]}},
    }
    plan = plan_of(
        block, config={"scale": "reduced"}, scales={"reduced": {"rounds": 0.5, "samples": 0.7}}
    )
    (cell,) = plan.cells.values()
    assert (
        cell.plain_settings()["J"],
        cell.plain_settings()["rounds"],
        cell.plain_settings()["samples"],
    ) == (
        "J4",
        10,
        0.7,
    )
    assert plan.notes == ["study.main: 1 of 2 cells at this scale, without J J8"]
    assert len(plan_of(block, scales={"reduced": {"rounds": 0.5}}).cells) == 2


@pytest.mark.parametrize(
    ("scales", "sentence"),
    [
        (
            {"reduced": {"without": [{"J": "J16"}]}},
            "experiments.main.scales.reduced.without: no cell has J ['J16']",
        ),
        ({"reduced": {"share": 0.1}}, "experiments.main.scales.reduced has an unknown key 'share'"),
        (
            {"reduced": {"except": [{"rounds": 0.1}]}},
            "scales.reduced.except[0] lacks the key 'given'",
        ),
        (
            {"reduced": {"except": [{"given": {"J": "J4"}, "seeds": 1}]}},
            "scales.reduced.except[0] has an unknown key 'seeds'",
        ),
        ({"full": {"rounds": 0.1}}, "full"),
        ({"reducd": {"rounds": 0.1}}, "'reducd'"),
    ],
)
def test_mistakes_in_what_a_scale_means(plan_of: PlanOf, scales: dict[str, Any], sentence: str):
    with pytest.raises(UserError) as caught:
        plan_of({"scales": scales}, config={"scale": "reduced"})
    assert sentence in str(caught.value)
