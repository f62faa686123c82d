"""Claims are checked and resolved to comparisons before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.pipeline.specs import claims_spec
from cohort.pipeline.stages import Stages
from cohort.pipeline.targets import targets
from cohort.plan import Plan, drawn_names

HEAD = "item,source,doubtful,dataset,partition,J,strategy,other,metric,at,round,value,sd\n"
MAIN = {
    "axes": {
        "partition": ["iid", "classes-2", "classes-3"],
        "J": ["J4", "J8"],
        "strategy": ["fedavg", "fedentopt"],
        "seed": [0, 1],
    },
    "exclude": [{"partition": "classes-3", "J": ["J8"]}],
}
CLAIM = {"says": "So it is.", "where": "Section 1", "experiment": "main", "metric": "test_accuracy"}
ORDER = CLAIM | {
    "kind": "order",
    "along": "partition",
    "values": ["iid", "classes-2"],
    "way": "falls",
}
PlanOf = Callable[..., Plan]


@pytest.fixture
def planned(plan_of: PlanOf) -> Callable[..., Plan]:
    folder = Path("resources/paper_values")
    row = "digits,iid,J4,fedavg,,test_accuracy,last,,0.5,\n"
    (folder / "study.csv").write_text(
        HEAD
        + f"TableI,printed,,{row}TableII,printed,,{row}TableII,printed,,{row.replace('0.5', '0.6')}"
    )

    def make(claim: dict[str, Any], *, config: dict[str, Any] | None = None, **study: Any) -> Plan:
        return plan_of(MAIN, config=config, claims={"one": claim}, **study)

    return make


@pytest.mark.parametrize(
    "claim",
    [ORDER, ORDER | {"at": "first 0.2"}],
)
def test_a_claim_asks_for_the_records_of_its_experiment(
    planned: Callable[..., Plan], claim: dict[str, Any]
):
    plan = planned(claim)
    stages = Stages(plan)
    assert drawn_names("study") == ["claims"]
    inputs = stages.claim_inputs(SimpleNamespace(study="study", scale=plan.scale))
    assert inputs == ["results/full/metrics/study/main.parquet", "resources/paper_values/study.csv"]
    files = dict(targets(plan))["study_claims"](None)
    assert files == [
        inputs[0],
        *(f"results/full/tables/study/claims.{ending}" for ending in ("csv", "md", "tex", "json")),
    ]
    of_study = {"report/study.html", "report/study.json", "tables/study/claims.json"}
    everything = {*files, *(f"results/full/{name}" for name in of_study)}
    assert everything == set(dict(targets(plan))["study"](None))
    assert set(files[-3:]) < set(
        stages.page_inputs(SimpleNamespace(study="study", scale=plan.scale))
    )


def test_comparisons_are_resolved_when_it_is_planned(planned: Callable[..., Plan]):
    spec = claims_spec(planned(ORDER), "study")
    assert (spec["scale"], spec["metrics"]) == (
        "full",
        {"main": "results/full/metrics/study/main.parquet"},
    )
    comparisons = spec["claims"]["one"]["comparisons"]
    assert [comparison["name"] for comparison in comparisons] == [
        {"J": j, "strategy": strategy} for j in ("J4", "J8") for strategy in ("fedavg", "fedentopt")
    ]
    assert [point["labels"]["partition"] for point in comparisons[0]["points"]] == [
        "iid",
        "classes-2",
    ]
    assert "seed" not in comparisons[0]["points"][0]["labels"]


def test_cells_that_a_scale_leaves_out_are_still_compared(planned: Callable[..., Plan]):
    """Thinned to the first cell of each strategy: judging must be able to say what is not planned."""
    plan = planned(ORDER, config={"scale": "smoke"})
    assert len(plan.study("study").experiments["main"].rows) == 2
    assert len(claims_spec(plan, "study")["claims"]["one"]["comparisons"]) == 4


@pytest.mark.parametrize(("scale", "at"), [("full", 60), ("reduced", 12), ("smoke", 3)])
def test_a_round_scales_with_the_rounds(planned: Callable[..., Plan], scale: str, at: int):
    spec = claims_spec(planned(ORDER | {"at": 60}, config={"scale": scale}), "study")["claims"][
        "one"
    ]
    assert spec["at"] == spec["comparisons"][0]["points"][0]["at"] == 60
    assert round(60 * spec["rounds"]["main"]) == at


def test_a_study_without_claims_has_no_such_target(plan_of: PlanOf):
    plan = plan_of(MAIN)
    assert "study_claims" not in dict(targets(plan))
