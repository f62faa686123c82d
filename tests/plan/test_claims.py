"""Claims are checked and resolved to comparisons before anything is trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.core.errors import UserError
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
SPREAD = CLAIM | {"kind": "spread", "along": "partition", "within": 1}
BEST = CLAIM | {"kind": "best", "along": "strategy", "among": ["fedavg"]}
GAP = CLAIM | {
    "kind": "gap",
    "along": "J",
    "between": ["J4", "J8"],
    "larger": {"partition": "iid"},
    "than": {"partition": "classes-2"},
}
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


@pytest.mark.parametrize(
    "claim",
    [ORDER, SPREAD, BEST, GAP, COMPARE, COMPARE | {"paper": "TableI"}, ORDER | {"at": "first 0.2"}],
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


MISTAKES = {
    "unknown kind": (
        ORDER | {"kind": "ordered"},
        "claims.one.kind is 'ordered', which is not known; did you mean 'order'?",
    ),
    "no sentence": (
        {key: value for key, value in ORDER.items() if key != "says"},
        "claims.one lacks the key 'says'",
    ),
    "unknown key": (
        ORDER | {"values_": []},
        "claims.one has an unknown key 'values_'; did you mean 'values'?",
    ),
    "key of another kind": (SPREAD | {"way": "falls"}, "claims.one has an unknown key 'way'"),
    "unknown metric": (
        ORDER | {"metric": "accuracy"},
        "claims.one.metric is 'accuracy', which is not known; did you mean 'test_accuracy'?",
    ),
    "unknown way": (
        ORDER | {"way": "down"},
        "claims.one.way is 'down', which is not known (allowed: falls, rises)",
    ),
    "unknown at": (
        ORDER | {"at": "end"},
        "claims.one.at is 'end', which does not look like last, max, min, mean, last-10, a round, a range such as 21-30, or 'first 0.2'",
    ),
    "round zero": (ORDER | {"at": 0}, "claims.one.at is 0, but must be at least 1"),
    "round that no run reaches": (
        ORDER | {"at": 112},
        "claims.one: at is 112, but runs of main that it compares end after 100 rounds",
    ),
    "unknown experiment": (
        ORDER | {"experiment": "mian"},
        "claims.one: experiment is 'mian', which is not known; did you mean 'main'?",
    ),
    "no axis along": (
        ORDER | {"along": "partitions"},
        "claims.one: along is 'partitions', which is not an axis of main; did you mean 'partition'?",
    ),
    "along the seeds": (
        ORDER | {"along": "seed"},
        "claims.one: along is 'seed', which is not an axis of main",
    ),
    "no axis given": (
        ORDER | {"given": {"j": "J4"}},
        "claims.one: given names 'j', which is not an axis of main",
    ),
    "not on the axis": (
        ORDER | {"values": ["iid", "class-2"]},
        "values names partition class-2, which is not on the axis of main; did you mean 'classes-2'?",
    ),
    "given is not on the axis": (
        ORDER | {"given": {"J": ["J4", "J16"]}},
        "given names J J16, which is not on the axis of main (allowed: J4, J8)",
    ),
    "among is not on the axis": (
        BEST | {"among": ["fedprox"]},
        "among names strategy fedprox, which is not on the axis of main",
    ),
    "among all": (
        BEST | {"among": ["fedavg", "fedentopt"]},
        "among must hold some of the values of strategy that are compared, and not all of them (fedavg, fedentopt)",
    ),
    "among none that count": (
        CLAIM
        | {
            "kind": "best",
            "along": "partition",
            "among": ["iid"],
            "given": {"partition": ["classes-2", "classes-3"], "J": "J4"},
        },
        "among must hold some of the values of partition that are compared, and not all of them (classes-2, classes-3)",
    ),
    "neither is better": (
        BEST | {"metric": "learning_rate"},
        "metric is 'learning_rate', of which neither high nor low is better",
    ),
    "a cell that the study leaves out": (
        ORDER | {"values": ["iid", "classes-3"]},
        "claims.one: main has no cell with partition classes-3 and J J8, dataset digits, model small-mlp, strategy fedavg",
    ),
    "given leaves nothing": (
        ORDER | {"given": {"partition": "classes-3", "J": "J8"}},
        "claims.one: main has no cell with partition classes-3, J J8",
    ),
    "nothing to compare": (
        SPREAD | {"given": {"partition": "iid"}},
        "there is nothing to compare with partition iid of main; let given leave more",
    ),
    "more than seeds": (
        COMPARE | {"given": {"partition": "iid", "J": "J4"}},
        "claims.one: given leaves strategy fedavg and fedentopt of main together, which differ in more than their seed; "
        "say which is meant (given: {strategy: ...})",
    ),
    "other with more than seeds": (
        COMPARE | {"above": [{"given": {}}]},
        "claims.one: given leaves strategy fedavg and fedentopt of main together",
    ),
    "other of no experiment": (
        COMPARE | {"above": [{"experiment": "other"}]},
        "claims.one: experiment is 'other', which is not known",
    ),
    "misspelt other": (
        COMPARE | {"above": [{"gives": {}}]},
        "claims.one.above[0] has an unknown key 'gives'; did you mean 'given'?",
    ),
    "neither above nor below": (
        CLAIM | {"kind": "compare", "given": ONE},
        "claims.one: it needs above or below, a list of what it is compared with",
    ),
    "other in another unit": (
        COMPARE | {"above": [{"given": ONE, "metric": "test_loss"}]},
        "claims.one: test_accuracy (at last) cannot be compared with test_loss (at last), which has another unit",
    ),
    "rounds and values": (
        COMPARE | {"above": [{"given": ONE, "at": "first 0.2"}]},
        "claims.one: test_accuracy (at last) cannot be compared with test_accuracy (at first 0.2), which has another unit",
    ),
    "other at no evaluation": (
        COMPARE | {"above": [{"given": ONE, "at": "end"}]},
        "claims.one.above[0].at is 'end', which does not look",
    ),
    "gap of one value": (GAP | {"between": ["J4"]}, "claims.one.between"),
    "gap off the axis": (
        GAP | {"between": ["J4", "J5"]},
        "claims.one: between names J J5, which is not on the axis of main",
    ),
    "gap without its cells": (
        GAP | {"than": {"partition": "classes-3"}},
        "main has no cell with J J8 and dataset digits, model small-mlp, partition classes-3, strategy fedavg",
    ),
    "unknown item": (
        ORDER | {"paper": "TableX"},
        "claims.one: paper is 'TableX', which neither resources/paper_values/study.csv nor resources/paper_values/study_curves.csv holds",
    ),
    "item that fits nothing": (
        ORDER | {"paper": "TableI", "at": "max"},
        "claims.one: paper is 'TableI', but no value of it in resources/paper_values/study.csv or "
        "resources/paper_values/study_curves.csv fits what is compared (test_accuracy, at max); compare their labels",
    ),
    "item that fits twice": (ORDER | {"paper": "TableII"}, "claims.one: paper has two values for"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(planned: Callable[..., Plan], name: str):
    claim, sentence = MISTAKES[name]
    with pytest.raises(UserError) as error:
        planned(claim)
    assert sentence in str(error.value), str(error.value)
    assert str(error.value).startswith("config/studies/study.yaml: claims.one")


def test_a_table_cannot_be_called_claims(planned: Callable[..., Plan]):
    table = {"experiment": "main", "metric": "test_accuracy", "rows": ["partition", "J"]}
    with pytest.raises(
        UserError,
        match="'claims' is the name of the table of claims; rename the figure or table",
    ):
        planned(ORDER, tables={"claims": table})


def test_a_study_without_claims_has_no_such_target(plan_of: PlanOf):
    plan = plan_of(MAIN)
    assert "study_claims" not in dict(targets(plan))
