"""Several measures in one table, by hand from the nine runs in conftest.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.results.files import write_metrics
from cohort.results.tables.spec import Table
from cohort.results.tables.tabulate import tabulate


@pytest.fixture
def metrics(frame: pd.DataFrame, tmp_path: Path) -> Path:
    """Evaluate each run with a value twice: first with 0.1 less; its loss is 2, then 3."""
    rows = frame[frame["value"].notna()]
    earlier = rows.assign(round=4, value=rows["value"] - 0.1)
    losses = [
        rows.assign(metric="test_loss", round=round, value=value)
        for round, value in ((4, 2.0), (8, 3.0))
    ]
    write_metrics(
        tmp_path / "metrics.parquet",
        pd.concat([frame, earlier, *losses]).astype({"metric": "string", "round": "Int64"}),
        {},
    )
    return tmp_path / "metrics.parquet"


def lines_of(spec: dict[str, Any], metrics: Path) -> list[str]:
    tabulate(spec, metrics, [metrics.parent / "t.md"])
    return [
        line
        for line in (metrics.parent / "t.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]


def test_measures_are_columns(spec: dict[str, Any], metrics: Path):
    """fedavg on dir-0.1 ends at 0.50 and 0.54; the lowest accuracies are 0.1 less."""
    lines = lines_of(spec | {"also": ["test_accuracy min", "test_loss", "test_loss min"]}, metrics)
    heads = "Partition | Strategy | Test accuracy (%), last evaluation | Test accuracy (%), lowest evaluation"
    assert lines[0] == f"| {heads} | Test loss, last evaluation | Test loss, lowest evaluation |"
    name = "Fed\\|Avg & co"
    assert (
        f"| dir-0.1 | {name} | 52.00 ± 2.83 (2)<br>[26.59, 77.41] | 42.00 ± 2.83 (2)<br>[16.59, 67.41] | 3.000 ± 0.000 (2)<br>[3.000, 3.000] | 2.000 ± 0.000 (2)<br>[2.000, 2.000] |"
        in lines
    )
    assert (
        "| dir-0.1 | fedent_opt | 60.00 (n = 1 of 2) | 50.00 (n = 1 of 2) | 3.000 (n = 1 of 2) | 2.000 (n = 1 of 2) |"
        in lines
    )


def test_a_shared_at_is_stated_once(spec: dict[str, Any], metrics: Path):
    lines = lines_of(spec | {"also": ["test_loss"]}, metrics)
    assert lines[0] == "| Partition | Strategy | Test accuracy (%) | Test loss |"


def test_the_mean_of_counts_has_a_decimal(spec: dict[str, Any], metrics: Path):
    """4 and 9 have the mean 6.5 and the deviation 5 / 2 ** 0.5; the one result of fedent_opt is 4."""
    cells = pd.read_parquet(metrics)
    cells = cells[
        cells["metric"].isna() | ((cells["metric"] == "test_accuracy") & (cells["round"] == 8))
    ]
    counts = cells["seed"] * 5.0 + 4
    write_metrics(
        metrics,
        cells.assign(metric="never_selected", value=counts.where(cells["value"].notna())),
        {},
    )
    line = lines_of(spec | {"metric": "never_selected"}, metrics)[3]
    assert line == "| dir-0.1 | 6.5 ± 3.5 (2)<br>[-25.3, 38.3] | 4 (n = 1 of 2) |"


@pytest.mark.parametrize(
    ("also", "sentence"),
    [
        (
            ["test_los"],
            "also names the metric 'test_los', which is not known; did you mean 'test_loss'?",
        ),
        (["test_loss first"], "also: 'first' is not a value of at"),
        (["test_loss", "test_loss last"], "also names a measure twice"),
        (["test_accuracy"], "also names a measure twice"),
    ],
)
def test_mistakes(also: list[str], sentence: str):
    with pytest.raises(UserError, match=sentence.replace("?", r"\?")):
        Table(metric="test_accuracy", rows=["J"], also=also).check()
