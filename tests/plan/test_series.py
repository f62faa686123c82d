"""A series names a curve and changes nothing else; what else lets a figure mix cells: null in paired lists, `pooled`, `dashed`, titles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.specs import look_of, page_spec, spec_of
from cohort.pipeline.stages import record_files
from cohort.plan import Plan

PlanOf = Callable[..., Plan]
MIXED = {
    "axes": {"J": ["J4"], "seed": [0]},
    "paired": [
        {
            "series": ["IID", "buffer 0.25", "buffer 0.5"],
            "partition": ["iid", "classes-2", "classes-2"],
            "strategy": ["fedavg", "fedentopt", "fedentopt"],
            "selector.buffer": [None, 0.25, 0.5],
        }
    ],
}
FIGURE = {"experiment": "main", "kind": "curves", "metric": "test_accuracy", "hue": "series"}
SAME = {"J": ["J4"], "seed": [0]}


@pytest.fixture
def mixed(plan_of: PlanOf) -> Callable[..., Plan]:
    """A study whose one experiment is MIXED, or another block without the axes that the others have."""

    def make(
        block: dict[str, Any] = MIXED, *, config: dict[str, Any] | None = None, **study: Any
    ) -> Plan:
        return plan_of({}, config=config, **({"experiments": {"main": block}} | study))

    return make


def test_null_is_no_value(mixed: Callable[..., Plan]):
    experiment = mixed().study("study").experiments["main"]
    assert [row.labels["selector.buffer"] for row in experiment.rows] == [None, 0.25, 0.5]
    assert experiment.axes["selector.buffer"] == [0.25, 0.5]


def test_a_run_may_stand_in_several_panels(mixed: Callable[..., Plan]):
    """It is planned, trained and counted once, and each panel has its own name for it."""
    paired = [
        {
            "panel": ["left", "left", "right"],
            "series": ["both", "one", "all"],
            "partition": ["iid", "classes-2", "iid"],
        }
    ]
    block = {"axes": SAME | {"strategy": ["fedavg"]}, "paired": paired}
    figures = {"fig1": FIGURE | {"rows": "panel", "also": ["test_loss"]}}
    plan = mixed(block, figures=figures)
    rows = plan.study("study").experiments["main"].rows
    assert [(row.labels["panel"], row.labels["series"]) for row in rows] == [
        ("left", "both"),
        ("left", "one"),
        ("right", "all"),
    ]
    assert rows[0].digest == rows[2].digest != rows[1].digest
    assert len(plan.cells) == len(plan.rows(["study"])["study", "main"]) == 2
    assert len(record_files(plan, "study", "main")) == 2


def test_a_cell_without_what_it_needs(mixed: Callable[..., Plan]):
    block = {
        "axes": SAME | {"strategy": ["fedavg"]},
        "paired": [{"series": ["a"], "partition": [None]}],
    }
    with pytest.raises(UserError, match="no value for 'partition'"):
        mixed(block)


POOLED = {"hue": "J", "pooled": ["series", "partition", "strategy", "selector.buffer"]}


def test_what_would_be_averaged_must_be_named(mixed: Callable[..., Plan]):
    with pytest.raises(
        UserError,
        match="fig1 would average runs with partition iid and classes-2 as if they were seeds",
    ):
        mixed(
            figures={
                "fig1": FIGURE | POOLED | {"pooled": ["series", "strategy", "selector.buffer"]}
            }
        )
    assert (
        spec_of(mixed(figures={"fig1": FIGURE | POOLED}), "study", "fig1")["pooled"]
        == POOLED["pooled"]
    )


def test_titles_reach_figures_tables_and_the_page(mixed: Callable[..., Plan]):
    titles = {
        "partition": {"classes-2": "Two classes"},
        "selector.buffer": {"0.5": "half"},
        "strategy": {"fedavg": "Chance"},
    }
    plan = mixed(figures={"fig1": FIGURE}, titles=titles)
    result = spec_of(plan, "study", "fig1")["look"]["titles"]
    assert result == titles | {
        "strategy": {"fedavg": "Chance", "fedentopt": plan.strategies["fedentopt"]["title"]}
    }
    shown = page_spec(plan, "study")
    assert (
        shown["titles"]["partition"] == {"classes-2": "Two classes"}
        and shown["titles"]["strategy"]["fedavg"] == "Chance"
    )


def test_a_centralized_runs_rounds_are_epochs(plan_of: PlanOf):
    central = {
        "settings": {"procedure": "centralized", "clients": 1, "cohort": 1},
        "axes": {"strategy": ["centralized"], "J": ["J1e"]},
    }
    assert look_of(plan_of(central), "study", "main")["round"] == "Epoch"
    assert look_of(plan_of({}), "study", "main")["round"] == "Round"


def test_a_cell_that_two_experiments_have_is_made_cheaper_as_the_first_says(
    mixed: Callable[..., Plan],
):
    scales = {"reduced": {"rounds": 0.5, "without": [{"selector.buffer": 0.5}]}}
    first = {
        "axes": SAME | {"partition": ["iid"], "strategy": ["fedavg"]},
        "scales": scales,
        "include": [{"partition": "classes-2", "strategy": "fedentopt", "selector.buffer": 0.5}],
    }
    plan = mixed(experiments={"first": first, "main": MIXED}, config={"scale": "reduced"})
    rounds = [
        plan.cells[row.digest].plain_settings()["rounds"]
        for row in plan.study("study").experiments["main"].rows
    ]
    assert rounds == [50, 20] and len(plan.cells) == 2
    assert "study.main: 2 of 3 cells at this scale" in plan.notes
