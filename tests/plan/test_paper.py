"""What drawing is told of the paper that a figure or table names."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cohort.pipeline.stages import Stages, spec_of
from cohort.plan import Plan

HEAD = "item,source,doubtful,dataset,model,partition,J,strategy,other,metric,at,round,value,sd\n"
VALUES = f"""{HEAD}\
TableI,printed,,digits,small-mlp,iid,J4,fedavg,,test_accuracy,last,,0.5,
TableI,printed,,digits,lenet5,iid,J4,fedavg,,test_accuracy,last,,0.6,
"""
CURVE = f"{HEAD}Fig3,authors' log,,digits,,iid,J4,fedavg,,test_accuracy,1,1,0.5,\n"
TABLE = {"experiment": "main", "metric": "test_accuracy", "rows": ["partition"], "paper": "TableI"}
FIGURE = {"experiment": "main", "kind": "curves", "metric": "test_accuracy", "paper": "Fig3"}
BARS = FIGURE | {"kind": "bars", "x": "partition", "paper": "TableI"}


@pytest.mark.parametrize(
    ("section", "spec", "name"),
    [
        ("tables", TABLE, "study.csv"),
        ("figures", FIGURE, "study_curves.csv"),
        ("figures", BARS, "study.csv"),
    ],
)
def test_a_known_item_that_fits(
    plan_of: Callable[..., Plan], section: str, spec: dict[str, Any], name: str
):
    folder = Path("resources/paper_values")
    (folder / "study.csv").write_text(VALUES)
    (folder / "study_curves.csv").write_text(CURVE)
    plan = plan_of({}, config={"scale": "smoke"}, **{section: {"item": spec}})
    result = spec_of(plan, "study", "item")
    assert (result["scale"], result["paper_values"]) == ("smoke", f"{folder}/{name}")
    wildcards = SimpleNamespace(study="study", scale="smoke", name="item")
    metrics = "results/smoke/metrics/study/main.parquet"
    assert Stages(plan).item_inputs(wildcards) == [metrics, f"{folder}/{name}"]
