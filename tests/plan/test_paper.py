"""What a figure or table may say of a paper, checked before anything is trained, and what drawing is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


def test_the_authors_curve_of_aml_fits_its_cells(project: Path):
    """The labels that a study of this paper has, with the committed values."""
    from cohort.results.paper import match_values, read_paper

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
