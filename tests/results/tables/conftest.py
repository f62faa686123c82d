from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.series import write_metrics
from cohort.results.tables.tabulate import tabulate

Spec = dict[str, Any]
NAN = float("nan")
CELLS = [  # partition, strategy, seed, status, final accuracy
    ("dir-0.1", "fedavg", 0, "done", 0.50),
    ("dir-0.1", "fedavg", 1, "done", 0.54),
    ("dir-0.1", "fedent_opt", 0, "done", 0.60),
    ("dir-0.1", "fedent_opt", 1, "missing", NAN),
    ("iid", "fedavg", 0, "done", 0.70),
    ("iid", "fedavg", 1, "diverged", 0.10),
    ("iid", "fedent_opt", 0, "unfinished", 0.99),
    ("iid", "fedent_opt", 1, "missing", NAN),
    ("roles-5", "fedavg", 0, "diverged", NAN),
]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Metrics of runs of every status: done, diverged, unfinished and missing."""
    columns = ["partition", "strategy", "seed", "status", "value"]
    cells = pd.DataFrame(CELLS, columns=columns).assign(
        study="demo", experiment="main", metric="test_accuracy", round=8, client=None, classes=10
    )
    cells = cells.assign(
        digest=[f"k{index}" for index in range(len(cells))],
        metric=cells["metric"].where(cells["status"] != "missing"),
    )
    return cells.astype({"metric": "string", "round": "Int64", "client": "Int64"})


@pytest.fixture
def metrics(frame: pd.DataFrame, tmp_path: Path) -> Path:
    """Write the runs of `frame` to a Parquet file and return its path."""
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    return tmp_path / "metrics.parquet"


@pytest.fixture
def spec() -> Spec:
    """A table's spec with strategies as columns and partitions as rows."""
    orders = {"partition": ["iid", "dir-0.1", "roles-5"], "strategy": ["fedavg", "fedent_opt"]}
    style = {"orders": orders, "titles": {"strategy": {"fedavg": "Fed|Avg & co"}}}
    return {
        "study": "demo", "experiment": "main", "title": "100% & more", "caption": "As in Table I", "style": style,
        "metric": "test_accuracy", "at": "last", "rows": ["partition"], "columns": "strategy",
    }  # fmt: skip


def written(spec: Spec, metrics: Path, ending: str = ".md") -> str:
    output = metrics.parent / f"table{ending}"
    tabulate(spec, metrics, [output])
    return output.read_text(encoding="utf-8")
