"""Tables by client, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cohort.results.files import write_metrics
from cohort.results.tables.tabulate import tabulate

FIELDS: dict[str, Any] = {"metric": "batch_accuracy", "also": ["selected"], "rows": ["client"]}
ACCURACY = [0.5, 0.9, None, 0.7]  # client 2 was never chosen


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """Two seeds of four clients; those of the second one are others."""
    rows = []
    for seed in (0, 1):
        known = {
            "digest": f"k{seed}",
            "study": "s",
            "experiment": "e",
            "strategy": "fedavg",
            "seed": seed,
            "status": "done",
            "round": None,
        }
        for client, accuracy in enumerate(ACCURACY):
            value = 0.1 if seed and accuracy else accuracy
            rows.append(known | {"metric": "batch_accuracy", "client": client, "value": value})
            rows.append(known | {"metric": "selected", "client": client, "value": client + 3.0})
    frame = pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})
    write_metrics(tmp_path / "metrics.parquet", frame, {})
    return tmp_path / "metrics.parquet"


def lines(metrics: Path, **fields: Any) -> list[str]:
    spec = {"look": {"orders": {}, "titles": {}}, **FIELDS, **fields}
    tabulate(spec, metrics, [metrics.parent / "table.md"])
    text = (metrics.parent / "table.md").read_text()
    return [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]


def test_each_client_of_the_first_seed(metrics: Path):
    assert lines(metrics) == [
        "| Client | Mean accuracy of a client's minibatches (%) | Rounds in the cohort |",
        "| 0 | 50.00 | 3 |",
        "| 1 | 90.00 | 4 |",
        "| 2 | – | 5 |",
        "| 3 | 70.00 | 6 |",
    ]


def test_measures_stay_in_their_order_within_a_row(metrics: Path):
    """However many there are: rows of equal labels must not be shuffled."""
    also = [f"train_loss {round}" for round in range(1, 30)]
    spec = {
        "look": {"orders": {}, "titles": {}},
        "metric": "train_loss",
        "also": also,
        "rows": ["seed"],
    }
    tabulate(spec, metrics, [metrics.parent / "order.csv"])
    numbers = pd.read_csv(metrics.parent / "order.csv", dtype=str)
    assert numbers["at"].tolist() == ["last", *map(str, range(1, 30))] * 2
