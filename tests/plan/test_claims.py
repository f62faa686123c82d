"""Claims are checked and resolved to comparisons before anything is trained."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.pipeline.stages import Stages, claims_spec, targets
from cohort.plan import Plan, drawn_names

HEAD = "item,source,doubtful,dataset,partition,J,strategy,other,metric,at,round,value,sd\n"
AXES = {
    **{"partition": ["iid", "classes-2", "classes-3"], "J": ["J4", "J8"]},
    **{"strategy": ["fedavg", "fedentopt"], "seed": [0, 1]},
}
MAIN = {"axes": AXES, "exclude": [{"partition": "classes-3", "J": ["J8"]}]}
CLAIM = {"says": "So it is.", "where": "Section 1", "experiment": "main", "metric": "test_accuracy"}
ALONG = CLAIM | {"along": "partition"}
ORDER = ALONG | {"kind": "order", "values": ["iid", "classes-2"], "way": "falls"}
RANGE = ALONG | {"kind": "range", "within": 1}
BEST = CLAIM | {"kind": "best", "along": "strategy", "among": ["fedavg"]}
STEP = [{"partition": "classes-2"}, {"partition": "iid"}]
GAP = CLAIM | {"kind": "gap", "along": "J", "between": ["J4", "J8"], "grows": [STEP]}
ONE = {"partition": "iid", "J": "J4", "strategy": "fedavg"}
COMPARE = CLAIM | {"kind": "compare", "given": ONE, "above": [{"given": ONE | {"J": "J8"}}]}
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


@pytest.mark.parametrize("claim", [ORDER, COMPARE | {"paper": "TableI"}])
def test_a_claim_asks_for_the_records_of_its_experiment(
    planned: Callable[..., Plan], claim: dict[str, Any]
) -> None:
    plan = planned(claim)
    stages = Stages(plan)
    assert drawn_names("study") == ["claims"]
    inputs = stages.claim_inputs(SimpleNamespace(study="study", scale=plan.scale))
    assert inputs == ["results/full/metrics/study/main.parquet", "resources/paper_values/study.csv"]
    files = dict(targets(plan))["study_claims"](None)
    ends = ("csv", "md", "tex", "json")
    assert files == [inputs[0], *(f"results/full/tables/study/claims.{end}" for end in ends)]
    of_study = {"report/study.html", "report/study.json", "tables/study/claims.json"}
    everything = {*files, *(f"results/full/{name}" for name in of_study)}
    assert everything == set(dict(targets(plan))["study"](None))
    page = stages.page_inputs(SimpleNamespace(study="study", scale=plan.scale))
    assert set(files[-3:]) < set(page)


def test_comparisons_are_resolved_when_it_is_planned(planned: Callable[..., Plan]) -> None:
    spec = claims_spec(planned(ORDER), "study")
    assert spec["scale"] == "full"
    assert spec["metrics"] == {"main": "results/full/metrics/study/main.parquet"}
    comparisons = spec["claims"]["one"]["comparisons"]
    assert [comparison["name"] for comparison in comparisons] == [
        {"J": j, "strategy": strategy} for j in ("J4", "J8") for strategy in ("fedavg", "fedentopt")
    ]
    points = comparisons[0]["points"]
    assert [point["labels"]["partition"] for point in points] == ["iid", "classes-2"]
    assert "seed" not in points[0]["labels"] and points[0]["seeds"] == 2


def test_cells_that_a_scale_leaves_out_are_still_compared(planned: Callable[..., Plan]) -> None:
    """Thinned to the first cell of each strategy: judging must be able to say what is not planned."""
    plan = planned(ORDER, config={"scale": "smoke"})
    assert len(plan.study("study").experiments["main"].rows) == 2
    assert len(claims_spec(plan, "study")["claims"]["one"]["comparisons"]) == 4


UNLIKE = "test_accuracy (at last) cannot be compared with"


@pytest.mark.parametrize(
    ("claim", "changes", "sentence"),
    [
        (ORDER, {"given": {"partition": "classes-3", "J": "J8"}}, "no cell with partition classes"),
        (BEST, {"among": ["fedavg", "fedentopt"]}, "not all of them (fedavg, fedentopt)"),
        (
            ALONG | {"kind": "best", "among": ["iid"]},
            {"given": {"partition": ["classes-2", "classes-3"], "J": "J4"}},
            "among must hold some of the values of partition that are compared, and not all of th",
        ),
        (BEST, {"metric": "learning_rate"}, "neither high nor low is better"),
        (RANGE, {"given": {"partition": "iid"}}, "iid of main has no second value to compare"),
        (
            COMPARE,
            {"given": {"partition": "iid", "J": "J4"}},
            "given leaves strategy fedavg and fedentopt of main together, which differ in more than "
            "their seed; say which is meant (given: {strategy: ...})",
        ),
        (COMPARE, {"above": [{"experiment": "other"}]}, "experiment is 'other', which is not "),
        (COMPARE, {"above": None}, "it needs above or below, a list of what it is compared with"),
        (COMPARE, {"above": [{"given": ONE, "metric": "test_loss"}]}, f"{UNLIKE} test_loss (at la"),
        (COMPARE, {"above": [{"given": ONE, "at": "first 0.2"}]}, f"{UNLIKE} test_accuracy (at fi"),
        (GAP, {"between": ["J4", "J5"]}, "between names J J5, which is not on the axis of main"),
        (GAP, {"grows": [[{"partition": "classes-3"}, STEP[1]]]}, "main has no cell with J J8 and"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    planned: Callable[..., Plan], claim: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    changed = {key: value for key, value in (claim | changes).items() if value is not None}
    with pytest.raises(UserError) as error:
        planned(changed)
    assert sentence in str(error.value), str(error.value)
    assert str(error.value).startswith("config/studies/study.yaml: claims.one")
