"""Differences seed by seed, and rows that join two models; numbers are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.files import write_metrics
from cohort.results.tables.tabulate import tabulate

NAN = float("nan")
MINUS = {"strategy": {"with": "without"}}
# Model, strategy, seed, status, accuracy: the small model gains 0.1 and, diverged to the 0.1 of a
# guess, loses 0.3; the large one loses 0.05 in its one pair of finished runs.
CELLS = [
    ("small", "without", 0, "done", 0.5),
    ("small", "without", 1, "done", 0.4),
    ("small", "with", 0, "done", 0.6),
    ("small", "with", 1, "diverged", 0.7),
    ("large", "without", 0, "done", 0.65),
    ("large", "without", 1, "missing", NAN),
    ("large", "with", 0, "done", 0.6),
    ("large", "with", 1, "done", 0.9),
]
PAPER = """\
item,source,doubtful,model,strategy,other,metric,at,round,value,sd
TableII,printed,,small,with,,test_accuracy_gain,last,,0.0767,
TableII,printed,shifted,large,with,,test_accuracy_gain,last,,-0.0155,
TableII,printed,,small,with,,test_accuracy,last,,0.9,
"""


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    frame = pd.DataFrame(CELLS, columns=["model", "strategy", "seed", "status", "value"])
    frame = frame.assign(study="s", experiment="main", metric="test_accuracy", round=8, client=None)
    frame["classes"] = 10
    frame = frame.assign(
        digest=[f"k{index}" for index in range(len(frame))],
        metric=frame["metric"].where(frame["status"] != "missing"),
    )
    write_metrics(
        tmp_path / "metrics.parquet",
        frame.astype({"metric": "string", "round": "Int64", "client": "Int64"}),
        {},
    )
    return tmp_path / "metrics.parquet"


@pytest.fixture
def spec(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "paper.csv").write_text(PAPER)
    look = {
        "orders": {"model": ["small", "large"], "strategy": ["without", "with"]},
        "titles": {"model": {"small": "LeNet"}},
    }
    table = {
        "metric": "test_accuracy",
        "at": "last",
        "rows": ["strategy"],
        "columns": "model",
        "minus": MINUS,
    }
    return {"look": look, "paper_values": str(tmp_path / "paper.csv")} | table


def written(spec: dict[str, Any], metrics: Path, ending: str) -> list[str]:
    output = metrics.parent / f"table{ending}"
    tabulate(spec, metrics, [output])
    return output.read_text(encoding="utf-8").splitlines()


def test_differences_seed_by_seed(spec: dict[str, Any], metrics: Path) -> None:
    """The gains 0.1 and -0.3 have mean -0.1 and SD 0.2828; accuracies would have one of 0.3536.

    The seed without a partner does not count.
    """
    lines = written(spec, metrics, ".csv")
    assert lines == [
        "strategy,model,metric,at,mean,sd,low,high,n,planned,finished,diverged,best",
        "with,small,test_accuracy_gain,last,-0.1,0.2828427125,-2.641240947,2.441240947,2,2,2,1,0",
        "with,large,test_accuracy_gain,last,-0.05,,,,1,2,1,0,0",
    ]


def test_comparison_with_the_papers_differences(spec: dict[str, Any], metrics: Path) -> None:
    """-10 - 7.67 is -17.67, and -5 - -1.55 is -3.45; the paper's accuracy is not used."""
    lines = written(spec | {"paper": "TableII"}, metrics, ".md")
    small = "-10.00† ± 28.28 (2)<br>[-264.12, +244.12]<br>paper +7.67 (-17.67)<br>cannot tell"
    assert lines[2] == f"| with | {small} | -5.00 (n = 1 of 2)<br>paper -1.55‡ (-3.45) |"
