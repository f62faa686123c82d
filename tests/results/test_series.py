"""Values per cell and counts of runs, worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cohort.results.files import read_metrics, write_metrics
from cohort.results.series import (
    RunCounts,
    count_runs,
    label_text,
    read_metric,
    value_per_cell,
)

NAN = float("nan")


def frame(*cells: tuple[str, str, dict[str, object], dict[int, float]]) -> pd.DataFrame:
    """Cells as (digest, status, labels, accuracy by round)."""
    rows: list[dict[str, object]] = []
    for digest, status, labels, accuracy in cells:
        cell = {"digest": digest, "study": "s", "experiment": "e", **labels, "status": status}
        values = [("test_accuracy", round, value) for round, value in accuracy.items()] or [
            (None, None, NAN)
        ]
        rows += [
            cell | {"metric": metric, "round": round, "client": None, "value": value}
            for metric, round, value in values
        ]
    return pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})


LABELS = {"strategy": "fedavg", "seed": 0}
EVERY_FOUR = {4: 0.1, 8: 0.5, 12: 0.4, 16: 0.3, 20: 0.2}


@pytest.mark.parametrize(
    ("at", "value"), [("last", 0.2), ("max", 0.5), ("mean", 0.3), ("last-10", 0.3)]
)
def test_value_per_cell(at: str, value: float) -> None:
    # the last ten rounds of 20 are 11 to 20, evaluated at 12, 16 and 20: (0.4 + 0.3 + 0.2) / 3
    values = value_per_cell(frame(("a", "done", LABELS, EVERY_FOUR)), "test_accuracy", at)
    assert values["value"].tolist() == pytest.approx([value])


def test_the_last_ten_rounds_include_the_last_one() -> None:
    values = value_per_cell(
        frame(("a", "done", LABELS, {10: 100.0, 11: 1.0, 20: 3.0})), "test_accuracy", "last-10"
    )
    assert values["value"].tolist() == [2.0]


@pytest.mark.parametrize("at", ["last", "max", 2])
def test_a_diverged_run_guesses_and_a_missing_one_has_no_value(at: int | str) -> None:
    """One of ten classes is guessed in 10 % of samples, of a hundred in 1 %."""
    metrics = frame(
        ("a", "diverged", LABELS, {1: 0.2, 2: 0.3, 3: NAN}),
        ("b", "diverged", LABELS | {"seed": 1}, {1: math.inf}),
        ("c", "missing", LABELS | {"seed": 2}, {}),
    )
    metrics = metrics.assign(classes=metrics["digest"].map({"a": 10, "b": 100}))
    values = value_per_cell(metrics, "test_accuracy", at).set_index("digest")
    assert values["value"][["a", "b"]].tolist() == pytest.approx([0.1, 0.01])
    assert np.isnan(values["value"]["c"])
    assert values["status"].tolist() == ["diverged", "diverged", "missing"]


def test_a_diverged_run_has_the_largest_loss_on_its_data_set() -> None:
    cells = [("a", "diverged", 0.2), ("a", "done", 2.5), ("b", "done", 7.0), ("b", "diverged", NAN)]
    metrics = pd.concat(
        frame((str(index), status, LABELS | {"dataset": dataset}, {9: value}))
        for index, (dataset, status, value) in enumerate(cells)
    ).assign(metric="test_loss")
    assert value_per_cell(metrics, "test_loss", "last")["value"].tolist() == [2.5, 2.5, 7, 7]


@pytest.mark.parametrize(
    ("metric", "worst"), [("holdout_worst_accuracy", 0.02), ("test_calibration_error", 0.7)]
)
def test_a_diverged_run_is_never_better_than_a_finished_one(metric: str, worst: float) -> None:
    """Of ten classes 10 % are guessed, which the weakest group of a finished run may miss."""
    cells = [("done", 0.7), ("done", 0.02), ("diverged", 0.5), ("unfinished", 0.01)]
    metrics = frame(
        *((str(seed), status, LABELS, {9: value}) for seed, (status, value) in enumerate(cells))
    ).assign(metric=metric, classes=10)
    assert value_per_cell(metrics, metric, "last")["value"].tolist() == [0.7, 0.02, worst, 0.01]


def test_what_a_diverged_run_sent_is_what_it_sent() -> None:
    metrics = frame(("a", "diverged", LABELS, {1: 5.0, 2: 5.0})).assign(metric="bytes_up")
    assert value_per_cell(metrics, "bytes_up", "mean")["value"].tolist() == [5]


@pytest.mark.parametrize(
    ("statuses", "phrase"),
    [
        (["done"] * 3, "3 runs"),
        (["done"], "1 run"),
        (["done", "diverged", "missing"], "n = 1 of 3 runs (1 diverged, 1 missing)"),
        (["unfinished", "unfinished"], "n = 0 of 2 runs (2 unfinished)"),
    ],
)
def test_runs_behind(statuses: list[str], phrase: str) -> None:
    metrics = frame(
        *((str(index), status, LABELS, EVERY_FOUR) for index, status in enumerate(statuses))
    )
    assert count_runs(metrics).phrase == phrase


def test_runs_of_a_file(tmp_path: Path) -> None:
    write_metrics(
        tmp_path / "m.parquet",
        frame(("a", "done", LABELS, EVERY_FOUR), ("b", "missing", LABELS, {})),
        {},
    )
    assert count_runs(read_metrics(tmp_path / "m.parquet", "digest", "status")) == RunCounts(
        planned=2, done=1, diverged=0, unfinished=0, missing=1
    )


def test_reading_keeps_cells_without_the_metric_and_their_labels_as_text(tmp_path: Path) -> None:
    metrics = frame(
        ("b", "done", {"lr": 0.1, "buffer": None, "seed": 0}, EVERY_FOUR),
        ("a", "missing", {"lr": 1.0, "buffer": 0.5, "seed": 1}, {}),
    )
    write_metrics(tmp_path / "m.parquet", metrics.sample(frac=1, random_state=3), {})
    read = read_metric(tmp_path / "m.parquet", "test_accuracy")
    assert read["digest"].tolist() == ["a", *"bbbbb"]
    assert read["round"].tolist()[1:] == [4, 8, 12, 16, 20]
    assert read.loc[0, ["lr", "buffer"]].tolist() == ["1", "0.5"]
    assert read.loc[1, ["lr", "buffer"]].tolist() == ["0.1", "–"]
    assert read_metric(tmp_path / "m.parquet", "test_loss")["digest"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (np.float64(0.001), "0.001"), ("dir-0.1", "dir-0.1"), (NAN, "–")],
)
def test_label_text(value: object, text: str) -> None:
    assert label_text(value) == text
