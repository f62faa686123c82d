"""Values per cell, rounds, and counts of runs, worked out by hand."""

import math
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results import series
from cohort.results.comparison import Table
from cohort.results.series import check_at, read_metric, rounds_of, value_per_cell

NAN = float("nan")
LABELS = {"strategy": "fedavg", "seed": 0}
EVERY_FOUR = {4: 0.1, 8: 0.5, 12: 0.4, 16: 0.3, 20: 0.2}
EACH = {round: round / 100 for round in range(1, 41)}


def frame(*cells: tuple[str, str, dict[str, object], dict[int, float]]) -> pd.DataFrame:
    """Cells as (digest, status, labels, accuracy by round)."""
    rows: list[dict[str, object]] = []
    for digest, status, labels, accuracy in cells:
        cell = {"digest": digest, "study": "s", "experiment": "e", **labels, "status": status}
        values = [("test_accuracy", round, value) for round, value in accuracy.items()]
        rows += [
            cell | {"metric": metric, "round": round, "client": None, "value": value}
            for metric, round, value in values or [(None, None, NAN)]
        ]
    return pd.DataFrame(rows).astype({"metric": "string", "round": "Int64", "client": "Int64"})


@pytest.mark.parametrize(
    ("at", "accuracy", "share", "value"),
    [
        ("last", EVERY_FOUR, 1, 0.2),
        ("max", EVERY_FOUR, 1, 0.5),
        ("last-10", EVERY_FOUR, 1, 0.3),  # rounds 12, 16 and 20
        ("last-10", {10: 100.0, 11: 1.0, 20: 3.0}, 1, 2.0),
        ("21-30", EACH, 1, 0.255),  # the mean of 0.21 to 0.30
        (30, EACH, 1, 0.30),
        ("30", EACH, 1, 0.30),
        (30, {7: 7, 28: 28, 35: 35}, 1, 28),  # the last evaluation up to it
        ("21-30", dict.fromkeys(range(1, 28), 0.5), 1, 0.5),  # nine tenths of 30
        ("21-30", dict.fromkeys(range(1, 27), 0.5), 1, NAN),  # it ended early
        ("21-30", EACH, 0.2, 0.055),  # rounds 5 and 6 of a fifth of the rounds
        (30, EACH, 0.2, 0.06),
        ("21-30", {1: 0.3, 2: 0.9}, 0.02, 0.3),  # the first round stands for all up to 50
    ],
)
def test_value_per_cell(
    at: int | str, accuracy: dict[int, float], share: float, value: float
) -> None:
    metrics = frame(("a", "done", LABELS, accuracy)).assign(share=share)
    (result,) = value_per_cell(metrics, "test_accuracy", at)["value"]
    assert result == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize("at", ["last", "max", 2])
def test_a_diverged_run_guesses_and_a_missing_one_has_no_value(at: int | str) -> None:
    """One of ten classes is guessed in 10 % of samples, of a hundred in 1 %."""
    metrics = frame(
        ("a", "diverged", LABELS, {1: 0.2, 2: 0.3, 3: NAN}),
        ("b", "diverged", LABELS | {"seed": 1}, {1: math.inf}),
        ("c", "missing", LABELS | {"seed": 2}, {}),
    )
    metrics = metrics.assign(classes=metrics["digest"].map({"a": 10, "b": 100}))
    values = value_per_cell(metrics, "test_accuracy", at)
    assert values["value"].tolist() == pytest.approx([0.1, 0.01, NAN], nan_ok=True)
    assert values["status"].tolist() == ["diverged", "diverged", "missing"]


LOSSES = [("diverged", 0.2, "a"), ("done", 2.5, "a"), ("done", 7.0, "b"), ("diverged", NAN, "b")]
GROUPS = [("done", 0.7, "a"), ("done", 0.02, "a"), ("diverged", 0.5, "a")]
GROUPS += [("unfinished", 0.01, "a")]


@pytest.mark.parametrize(
    ("metric", "cells", "expected"),
    [
        ("test_loss", LOSSES, [2.5, 2.5, 7, 7]),  # the largest loss on its data set
        # of ten classes 10 % are guessed, which the weakest group of a finished run may miss
        ("holdout_worst_accuracy", GROUPS, [0.7, 0.02, 0.02, 0.01]),
        ("test_calibration_error", [("done", 0.7, "a"), ("diverged", 0.5, "a")], [0.7, 0.7]),
        ("bytes_up", [("done", 7, "a"), ("diverged", 5.0, "a")], [7, 5]),  # what it sent
    ],
)
def test_a_diverged_run_counts_with_the_worst_value(
    metric: str, cells: list[tuple[str, float, str]], expected: list[float]
) -> None:
    runs = [
        (str(index), status, LABELS | {"dataset": dataset}, {9: value})
        for index, (status, value, dataset) in enumerate(cells)
    ]
    metrics = frame(*runs).assign(metric=metric, classes=10)
    assert value_per_cell(metrics, metric, "last")["value"].tolist() == expected


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
    cells = ((str(index), status, LABELS, EVERY_FOUR) for index, status in enumerate(statuses))
    counts = series.count_runs(frame(*cells))
    assert series.runs_phrase(counts) == phrase
    assert counts == {"planned": len(statuses)} | {
        status: statuses.count(status) for status in ("done", "diverged", "unfinished", "missing")
    }


def test_reading_keeps_cells_without_the_metric_and_their_labels_as_text(tmp_path: Path) -> None:
    metrics = frame(
        ("b", "done", {"lr": 0.1, "buffer": None, "seed": 0}, EVERY_FOUR),
        ("a", "missing", {"lr": 1.0, "buffer": 0.5, "seed": 1}, {}),
    )
    series.write_metrics(tmp_path / "m.parquet", metrics.sample(frac=1, random_state=3), {})
    read = read_metric(tmp_path / "m.parquet", "test_accuracy")
    assert read["digest"].tolist() == ["a", *"bbbbb"]
    assert read["round"].tolist()[1:] == [4, 8, 12, 16, 20]
    assert read.loc[0, ["lr", "buffer"]].tolist() == ["1", "0.5"]
    assert read.loc[1, ["lr", "buffer"]].tolist() == ["0.1", "–"]
    assert read_metric(tmp_path / "m.parquet", "test_loss")["digest"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("at", "share", "expected"),
    [
        ("21-30", 1.0, (21, 30)),
        ("21-30", 0.5, (11, 15)),
        ("21-30", 0.01, (1, 1)),
        ("30-39", 0.29, (9, 11)),
        (30, 0.1, (1, 3)),
        ("last-10", 0.5, None),
    ],
)
def test_rounds_scale(at: int | str, share: float, expected: tuple[int, int] | None) -> None:
    assert rounds_of(at, share) == expected


def test_what_cannot_be_reached_is_refused() -> None:
    check_at("21-30", 30, "runs")
    check_at("last", 1, "runs")
    for at, rounds in (("21-30", 29), (11, 10)):
        with pytest.raises(UserError, match=rf"^at is {at}, but runs end after {rounds} rounds$"):
            check_at(at, rounds, "runs")
    with pytest.raises(UserError, match=r"^at is '30-21', a range that ends before it begins$"):
        check_at("30-21", 100, "runs")


@pytest.mark.parametrize(
    ("at", "is_valid"),
    [("21-30", True), (30, True), ("last-10", True)]
    + [(at, False) for at in ("21-", 0, "0-10", "middle", "first 0.2", 1.5)],
)
def test_the_schema_of_at(at: object, is_valid: bool) -> None:
    validator = jsonschema.Draft202012Validator(schema_of(Table))
    assert validator.is_valid({"metric": "test_accuracy", "rows": ["J"], "at": at}) == is_valid
