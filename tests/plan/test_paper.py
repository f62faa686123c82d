"""What a figure or table may say of a paper, checked before anything is trained, and what drawing is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.specs import spec_of
from cohort.pipeline.stages import Stages
from cohort.plan import Plan

HEAD = "item,source,doubtful,dataset,model,partition,J,strategy,other,metric,at,round,value,sd\n"
VALUES = (
    HEAD
    + """\
TableI,printed,,digits,small-mlp,iid,J4,fedavg,,test_accuracy,last,,0.5,
TableI,printed,,digits,lenet5,iid,J4,fedavg,,test_accuracy,last,,0.6,
TableII,printed,,digits,,iid,J4,fedavg,one,test_accuracy,last,,0.5,
TableII,printed,,digits,,iid,J4,fedavg,two,test_accuracy,last,,0.6,
TableIII,printed,,digits,,iid,J4,fedavg,,test_accuracy,max,,0.6,
"""
)
TABLE = {"experiment": "main", "metric": "test_accuracy", "rows": ["partition"]}
FIGURE = {"experiment": "main", "kind": "curves", "metric": "test_accuracy"}
BARS = {"experiment": "main", "kind": "bars", "metric": "test_accuracy", "x": "partition"}
PlanOf = Callable[..., Plan]


@pytest.fixture
def drawn(plan_of: PlanOf) -> Callable[..., Plan]:
    folder = Path("resources/paper_values")
    (folder / "study.csv").write_text(VALUES)
    (folder / "study_curves.csv").write_text(
        HEAD + "Fig3,authors' log,,digits,,iid,J4,fedavg,,test_accuracy,1,1,0.5,\n"
    )

    def make(spec: dict[str, Any], **config: Any) -> Plan:
        return plan_of(
            {},
            config=config,
            **({"figures": {"fig1": spec}} if "kind" in spec else {"tables": {"tab1": spec}}),
        )

    return make


@pytest.mark.parametrize(
    "spec",
    [
        TABLE | {"paper": "TableI"},
        FIGURE | {"paper": "Fig3"},
        BARS | {"paper": "TableI"},
    ],
)
def test_a_known_item_that_fits(drawn: Callable[..., Plan], spec: dict[str, Any]):
    plan = drawn(spec, scale="smoke")
    name = "fig1" if "kind" in spec else "tab1"
    told = spec_of(plan, "study", name)
    file = (
        "resources/paper_values/study_curves.csv"
        if spec.get("kind") == "curves"
        else "resources/paper_values/study.csv"
    )
    assert (told["scale"], told["paper_values"]) == ("smoke", file)
    inputs = Stages(plan).item_inputs(SimpleNamespace(study="study", scale=plan.scale, name=name))
    assert inputs == ["results/smoke/metrics/study/main.parquet", file]


def test_without_an_item_nothing_is_added(drawn: Callable[..., Plan]):
    plan = drawn(TABLE)
    assert "paper_values" not in spec_of(plan, "study", "tab1")
    assert Stages(plan).item_inputs(
        SimpleNamespace(study="study", scale=plan.scale, name="tab1")
    ) == ["results/full/metrics/study/main.parquet"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            TABLE | {"paper": "TableIV"},
            "config/studies/study.yaml: tab1: paper is 'TableIV', which resources/paper_values/study.csv does not hold; "
            "did you mean 'TableI'? (allowed: TableI, TableII, TableIII)",
        ),
        (
            TABLE | {"paper": "TableII"},
            "tab1: paper has two values for partition iid, strategy fedavg: 0.5 (TableII; dataset digits; J J4; one) and "
            "0.6 (TableII; dataset digits; J J4; two); name one item, keep them apart by an axis, or add a column to the file in "
            "resources/paper_values with the label that tells them apart",
        ),
        (
            TABLE | {"paper": "TableIII"},
            "tab1: paper is 'TableIII', but no value of it in resources/paper_values/study.csv fits a result shown here "
            "(test_accuracy, at last); compare their labels",
        ),
        (TABLE | {"paper": "TableI", "margin": 1}, "unknown key 'margin'"),
        (TABLE | {"papers": "TableI"}, "unknown key 'papers'; did you mean 'paper'?"),
        (
            FIGURE | {"paper": "Fig4"},
            "paper is 'Fig4', which resources/paper_values/study_curves.csv does not hold; did you mean 'Fig3'?",
        ),
        (
            FIGURE | {"paper": "Fig3", "metric": "test_loss"},
            "fig1: paper is 'Fig3', but no value of it in",
        ),
        (
            BARS | {"metric": "selected", "x": "client", "paper": "TableI"},
            "fig1: bars over x: client cannot show a paper's values",
        ),
    ],
)
def test_a_mistake_is_one_sentence(drawn: Callable[..., Plan], spec: dict[str, Any], sentence: str):
    with pytest.raises(UserError) as error:
        drawn(spec)
    assert sentence in str(error.value)


def test_a_study_without_values(plan_of: PlanOf):
    with pytest.raises(
        UserError,
        match=r"tab1: paper is 'TableI', but there is no resources/paper_values/study.csv",
    ):
        plan_of({}, tables={"tab1": TABLE | {"paper": "TableI"}})


def test_the_authors_curve_of_aml_fits_its_cells(project: Path):
    """The labels that a study of this paper has, with the committed values."""
    from cohort.results.paper import read_paper
    from cohort.results.paper_match import match_values

    cell = {
        "dataset": "cifar100",
        "model": "aml-lenet",
        "partition": "iid",
        "J": "J4e",
        "strategy": "fedavg",
        "seed": 0,
    }
    for item in ("Fig3", "Fig5", "Fig3/5/6/7"):
        (curve,) = match_values(
            read_paper("resources/paper_values/aml_curves.csv", item, "test_accuracy"),
            [cell],
            ["strategy"],
            list(cell),
        )
        assert (curve.values[0].round, curve.values[0].value) == (1, 0.0102)
        assert (curve.values[-1].round, curve.values[-1].value) == (2000, 0.4492)
    (end,) = match_values(
        read_paper("resources/paper_values/aml.csv", "Fig3", "test_accuracy"),
        [cell],
        ["strategy"],
        list(cell),
        at="last",
    )
    assert [(value.value, value.source) for value in end.values] == [(0.4492, "printed")]
