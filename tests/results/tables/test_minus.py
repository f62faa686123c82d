"""Differences seed by seed, and rows that join two models; numbers are worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.results.files import write_metrics
from cohort.results.tables.spec import Table
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


def test_gains_have_a_sign(spec: dict[str, Any], metrics: Path) -> None:
    lines = written(spec, metrics, ".md")
    assert lines[0] == "| Strategy | LeNet | large |"
    assert lines[2] == "| with | -10.00† ± 28.28 (2)<br>[-264.12, +244.12] | -5.00 (n = 1 of 2) |"
    assert "Gain in test accuracy (points), last evaluation" in lines[4]


def test_comparison_with_the_papers_differences(spec: dict[str, Any], metrics: Path) -> None:
    """-10 - 7.67 is -17.67, and -5 - -1.55 is -3.45; the paper's accuracy is not used."""
    lines = written(spec | {"paper": "TableII"}, metrics, ".md")
    small = "-10.00† ± 28.28 (2)<br>[-264.12, +244.12]<br>paper +7.67 (-17.67)<br>cannot tell"
    assert lines[2] == f"| with | {small} | -5.00 (n = 1 of 2)<br>paper -1.55‡ (-3.45) |"


def test_joined_as_papers_print_pairs(spec: dict[str, Any], metrics: Path) -> None:
    lines = written(spec | {"paper": "TableII", "joined": True}, metrics, ".md")
    assert lines[0] == "| with |"
    ours = "-10.00† ± 28.28 / -5.00 (2 / n = 1 of 2)"
    assert lines[2] == f"| {ours}<br>paper +7.67 (-17.67) / -1.55‡ (-3.45)<br>cannot tell / – |"
    assert lines[4].startswith("Model: LeNet / large. Gain in test accuracy (points)")


def test_each_part_of_a_joined_cell_is_bold_by_itself(spec: dict[str, Any], metrics: Path) -> None:
    """`more` gains 20 points less than `with` in the small model, and 30 more in the large one, give
    or take 0.2 from seed to seed."""
    accuracies = {
        "small": {"without": 0.4, "with": 0.7, "more": 0.5},
        "large": {"without": 0.4, "with": 0.5, "more": 0.8},
    }
    first = pd.read_parquet(metrics).iloc[[0]]
    cells = [
        first.assign(
            model=model,
            strategy=strategy,
            seed=seed,
            value=value + 0.01 * seed + 0.001 * (strategy == "more") * (seed % 3),
            digest=f"{model} {strategy} {seed}".replace(" ", "-"),
        )
        for model, values in accuracies.items()
        for strategy, value in values.items()
        for seed in range(5)
    ]
    write_metrics(metrics, pd.concat(cells), {})
    both = {
        "paper": "TableII",
        "joined": True,
        "minus": {"strategy": {"with": "without", "more": "without"}},
    }
    bold = r"\*\*\+\S+\*\* ± 0\.\d\d"
    heads, _, line = written(spec | both, metrics, ".md")[2:5]
    results = dict(zip(heads.split(" | "), line.split(" | "), strict=True))
    assert re.match(rf"\| {bold} / [^*]*<br>", results["| with"])
    assert re.match(rf"[^*]* / {bold} \|", results["more |"])
    tex = "\n".join(written(spec | both, metrics, ".tex"))
    assert tex.count(r"\textbf{+") == 2


def test_nothing_to_subtract_from(spec: dict[str, Any], metrics: Path) -> None:
    table = spec | {
        "paper": "TableII",
        "joined": True,
        "minus": {"strategy": {"nobody": "without"}},
    }
    lines = written(table, metrics, ".md")
    assert lines == ["Nothing of it is planned at this scale."]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"metric": "test_loss", "minus": MINUS},
            "minus cannot subtract test_loss, of which no gain is known",
        ),
        (
            {"minus": {"J": {"J8": "J4"}}},
            r"minus names 'J', which is neither in rows nor columns \(model, strategy\)",
        ),
    ],
)
def test_mistakes(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Table(**({"metric": "test_accuracy", "rows": ["model"]} | fields)).check()
