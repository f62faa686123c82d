"""A series names a curve and changes nothing else; what else lets a figure mix cells: null in paired lists, `pooled`, `dashed`, titles."""

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.stages import page_spec, record_files, spec_of, style_of
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
    names = {"panel": ["left", "left", "right"], "series": ["both", "one", "all"]}
    paired = [names | {"partition": ["iid", "classes-2", "iid"]}]
    block = {"axes": SAME | {"strategy": ["fedavg"]}, "paired": paired}
    figures = {"fig1": FIGURE | {"rows": "panel", "also": ["test_loss"]}}
    plan = mixed(block, figures=figures)
    rows = plan.study("study").experiments["main"].rows
    assert [row.labels["panel"] for row in rows] == names["panel"]
    assert [row.labels["series"] for row in rows] == names["series"]
    assert rows[0].digest == rows[2].digest != rows[1].digest
    assert len(plan.cells) == len(plan.rows(["study"])["study", "main"]) == 2
    assert len(record_files(plan, "study", "main")) == 2


def test_a_cell_without_what_it_needs(mixed: Callable[..., Plan]):
    paired = [{"series": ["a"], "partition": [None]}]
    block = {"axes": SAME | {"strategy": ["fedavg"]}, "paired": paired}
    with pytest.raises(UserError, match="no value for 'partition'"):
        mixed(block)


def test_what_would_be_averaged_must_be_named(mixed: Callable[..., Plan]):
    pooled = ["series", "strategy", "selector.buffer"]
    figure = FIGURE | {"hue": "J", "pooled": pooled}
    with pytest.raises(UserError, match="average runs with partition iid and classes-2 as if they"):
        mixed(figures={"fig1": figure})
    figure |= {"pooled": [*pooled, "partition"]}
    assert spec_of(mixed(figures={"fig1": figure}), "study", "fig1")["pooled"] == figure["pooled"]


def test_titles_reach_figures_tables_and_the_page(mixed: Callable[..., Plan]):
    titles = {"partition": {"classes-2": "Two classes"}, "strategy": {"fedavg": "Chance"}}
    plan = mixed(figures={"fig1": FIGURE}, titles=titles)
    strategy_titles = titles["strategy"] | {"fedentopt": plan.strategies["fedentopt"]["title"]}
    for shown in (spec_of(plan, "study", "fig1")["style"], page_spec(plan, "study")):
        assert shown["titles"] == titles | {"strategy": strategy_titles}


def test_a_centralized_runs_rounds_are_epochs(plan_of: PlanOf):
    central = {
        "settings": {"procedure": "centralized", "clients": 1, "cohort": 1},
        "axes": {"strategy": ["centralized"], "J": ["J1e"]},
    }
    assert style_of(plan_of(central), "study", "main")["round"] == "Epoch"
    assert style_of(plan_of({}), "study", "main")["round"] == "Round"


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
    rows = plan.study("study").experiments["main"].rows
    assert [plan.cells[row.digest].settings.rounds for row in rows] == [50, 20]
    assert len(plan.cells) == 2
    assert "study.main: 2 of 3 cells at this scale" in plan.notes
