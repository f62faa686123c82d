"""Label counts in the metrics: those of the record, invisible to figures of other metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cohort.cell.settings import DEFAULTS
from cohort.core.sealed_json import write_sealed
from cohort.records.history import History
from cohort.records.record import Record, write
from cohort.results.collect import EMPTY, Result, collect, read_result
from cohort.results.series import count_runs, label_columns, read_metric, value_per_cell

SETTINGS = {
    **{"dataset": "d", "model": "m", "partition": "iid", "J": "J1", "strategy": "fedavg"},
    **{"seed": 0, "cohort": 1, "batch": 1, "lr": 0.1},
    **{
        "selector": {"name": "random"},
        "objective": {"name": "cross-entropy"},
        "server": {"name": "average"},
    },
}


def record(counts: np.ndarray, status: str = "done") -> Record:
    clients, sizes = len(counts), counts.sum(axis=1)
    settings = SETTINGS | {"clients": clients, "rounds": 1}
    provenance = {
        "versions": {},
        "commit": "",
        "trainer": "serial",
        "devices": ["cpu"],
        "sessions": [{}],
        "peak_memory_mb": 1.0,
    }
    header = {
        "format": 1,
        "digest": "k0123456789ab",
        "status": status,
        "settings": settings,
        "science": {},
        "weights_sha256": "0" * 64,
    }
    history = History(cohorts=[np.array([0])])
    history.add_metrics(1, test_accuracy=0.5)
    arrays = {
        "size": sizes,
        "selected": sizes,
        "loss": sizes / 1.0,
        "accuracy": sizes / 1.0,
        "label_counts": counts,
    }
    return Record(header | {"provenance": provenance}, history, arrays)


def collected(folder: Path, counts: np.ndarray) -> Path:
    write(folder / "r.h5", record(counts))
    labels = {"dataset": "d", "strategy": "fedavg", "seed": 0}
    cells: list[dict[str, Any]] = [
        {"path": str(folder / "r.h5"), "digest": "k0123456789ab", "labels": labels}
    ]
    write_sealed(folder / "plan.json", {"study": "s", "experiment": "e", "cells": cells})
    collect(folder / "plan.json", folder / "m.parquet")
    return folder / "m.parquet"


def test_label_counts_are_rows_of_client_and_label(tmp_path: Path):
    """Counts of 0 are left out, except the last: it states the numbers of clients and labels."""
    rows = read_metric(
        collected(tmp_path, np.array([[3, 0, 7, 0], [0, 0, 0, 0], [0, 1, 0, 0]])), "label_count"
    )
    results = [(row.client, row.label, row.value) for row in rows.itertuples()]
    assert sorted(results) == [(0, 0, 3), (0, 2, 7), (2, 1, 1), (2, 3, 0)]
    assert rows["round"].isna().all()


def test_the_column_label_distinguishes_no_cells(tmp_path: Path):
    file = collected(tmp_path, np.array([[3, 0], [1, 1]]))
    assert label_columns(pd.read_parquet(file)) == ["dataset", "strategy", "seed"]
    for metric, count in (("size", 2), ("test_accuracy", 1)):
        rows = read_metric(file, metric)
        assert len(rows) == count and rows["label"].isna().all()


def test_hundred_clients_of_hundred_classes_make_a_small_file(tmp_path: Path):
    """10,000 rows."""
    file = collected(tmp_path, np.random.default_rng(0).integers(0, 10, (100, 100)))
    assert file.stat().st_size < 60_000


def test_numbers_and_names_may_be_mixed_on_an_axis(tmp_path: Path):
    mixed = [5, "10, last 10", None]
    cells = [{"path": "", "digest": f"k{value}", "labels": {"evaluate": value}} for value in mixed]
    write_sealed(tmp_path / "plan.json", {"study": "s", "experiment": "e", "cells": cells})
    result = Result("missing", EMPTY)
    collect(tmp_path / "plan.json", tmp_path / "m.parquet", result_of=lambda path: result)
    assert read_metric(tmp_path / "m.parquet", "size")["evaluate"].tolist() == [
        "10, last 10",
        "5",
        "–",
    ]


def test_a_cell_in_two_panels_is_drawn_twice_and_counted_once(tmp_path: Path):
    write(tmp_path / "r.h5", record(np.array([[3, 0], [1, 1]])))
    cells = [
        {"path": str(tmp_path / "r.h5"), "digest": "k0123456789ab", "labels": {"panel": panel}}
        for panel in ("left", "right")
    ]
    write_sealed(tmp_path / "plan.json", {"study": "s", "experiment": "e", "cells": cells})
    collect(tmp_path / "plan.json", tmp_path / "m.parquet")
    metrics = read_metric(tmp_path / "m.parquet", "test_accuracy")
    values = value_per_cell(metrics, "test_accuracy", "last")
    assert values[["panel", "value"]].to_numpy().tolist() == [["left", 0.5], ["right", 0.5]]
    assert count_runs(metrics).phrase == "1 run"


def test_what_records_say_about_themselves_is_written_beside_the_metrics(tmp_path: Path):
    """Their settings with the defaults of younger ones, so that the same cells of two ages agree."""
    made = record(np.array([[3, 0], [1, 1]]))
    made.header["restored"] = [{"release": "theirs", "commit": ""}]
    made.history.add_cost(1, seconds=2.5, bytes_up=1000.0)
    made.history.add_cost(2, seconds=1.5, bytes_up=500.0)
    made.header["settings"]["rounds"] = 2
    made.history.cohorts.append(np.array([1]))
    write(tmp_path / "r.h5", made)
    cells = [
        {"path": str(tmp_path / "r.h5"), "digest": "k0123456789ab", "labels": {"seed": 0}},
        {"path": "nowhere.h5", "digest": "k000000000000", "labels": {"seed": 1}},
    ]
    plan = tmp_path / "plan.json"
    write_sealed(plan, {"study": "s", "experiment": "e", "cells": cells})
    missing = Result("missing", EMPTY.iloc[:0])
    collect(
        plan,
        tmp_path / "m.parquet",
        result_of=lambda path: missing if path == "nowhere.h5" else read_result(path),
    )
    there, absent = json.loads((tmp_path / "m.json").read_text())["cells"]
    assert (there["seconds"], there["bytes_up"], there["bytes_down"]) == (4.0, 1500.0, 0)
    assert there["settings"] == DEFAULTS | made.header["settings"] and there["devices"] == ["cpu"]
    assert there["settings"]["evaluate_next"] == 0 and there["restored"] == ["theirs"]
    assert absent == cells[1] | {"status": "missing"}
