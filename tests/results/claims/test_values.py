"""Values at a round, and rounds at a value, worked out by hand."""

from __future__ import annotations

import math

import pytest

from cohort.results.claims.values import Value, value_at, values_by_seed
from tests.results.claims.samples import frame

NAN = float("nan")
CURVE = {100: 0.1, 200: 0.3, 400: 0.2, 900: 0.5, 1300: 0.4}


def at(
    when: str, values: dict[int, float], status: str = "done", metric: str = "test_accuracy"
) -> float:
    return float(
        value_at(frame([({"seed": 0}, status, values)], metric), metric, when)["value"].iloc[0]
    )


@pytest.mark.parametrize(
    ("when", "value"),
    [
        ("200", 0.3),
        ("399", 0.3),  # the last evaluation before it
        ("1000", 0.5),
        ("1300", 0.4),
        ("1444", 0.4),  # 90 % of 1,444 is 1,299.6: the run went on long enough
        ("1445", NAN),  # 1,300.5: it did not
        ("99", NAN),  # nothing was evaluated before it
    ],
)
def test_a_round(when: str, value: float) -> None:
    assert at(when, CURVE) == pytest.approx(value, nan_ok=True)


def test_a_diverged_run_only_guesses_whenever_it_diverged() -> None:
    for values in ({100: 0.1, 200: NAN}, {100: 0.3, 950: 0.2, 1000: NAN}, {}):
        metrics = frame([({"seed": 0}, "diverged", values)]).assign(classes=4)
        assert value_at(metrics, "test_accuracy", "1000")["value"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("when", "values", "status", "value"),
    [
        ("first 0.3", CURVE, "done", 200),
        ("first 0.31", CURVE, "done", 900),
        ("first 0.6", CURVE, "done", math.inf),
        ("first 0.6", CURVE, "diverged", math.inf),
        ("first 0.3", CURVE | {1300: NAN}, "diverged", math.inf),  # its model is worth nothing
        ("first 0.6", CURVE, "unfinished", NAN),  # it may yet
        ("first 0.6", {}, "missing", NAN),
        ("first 0.1", {3: NAN, 4: NAN}, "diverged", math.inf),
        ("first 0.1", {}, "diverged", math.inf),  # before its first evaluation
    ],
)
def test_the_first_round_that_reaches_a_threshold(
    when: str, values: dict[int, float], status: str, value: float
) -> None:
    assert at(when, values, status) == pytest.approx(value, nan_ok=True)


def test_a_finished_run_without_the_metric_has_no_value() -> None:
    metrics = frame([({"seed": 0}, "done", {1: 0.5})], "test_loss")
    assert math.isnan(value_at(metrics, "test_accuracy", "first 0.2")["value"].iloc[0])


def test_a_loss_reaches_a_threshold_from_above() -> None:
    assert at("first 2.5", {1: 4.0, 5: 2.6, 9: 2.5, 12: 3.0}, metric="test_loss") == 9
    assert at("first 2.4", {1: 4.0, 5: 2.6, 9: 2.5, 12: 3.0}, metric="test_loss") == math.inf


def test_the_lowest() -> None:
    assert at("min", {1: 4.0, 5: 2.6, 9: 3.0}, metric="test_loss") == 2.6
    assert math.isnan(at("min", {}, "missing", "test_loss"))


@pytest.mark.parametrize(
    ("when", "value"), [("last", 0.4), ("max", 0.5), ("mean", 0.35), ("last-10", 0.45)]
)
def test_other_evaluations_are_those_of_tables(when: str, value: float) -> None:
    assert at(when, {5: 0.1, 11: 0.4, 12: 0.5, 21: 0.4}) == pytest.approx(value)
    assert math.isnan(at(when, {}, "missing"))


@pytest.mark.parametrize(
    ("short", "long", "rows"),
    [
        ((5, 3), (math.inf, 20), [[5, 3], [31, 20]]),  # the longer run is known for 30 rounds
        ((5, 3), (math.inf, 30), [[5, 3], [31, 30]]),  # who never gets there is later than all
        ((math.inf, 3), (20, 20), [[6, 3], [6, 6]]),  # the shorter only for 5
        ((math.inf, 3), (math.inf, 20), [[6, 3], [6, 6]]),
        ((5, 3), (20, 20), [[5, 3], [20, 20]]),
    ],
)
def test_runs_are_cut_off_where_one_that_never_reaches_it_ends(
    short: tuple[float, ...], long: tuple[float, ...], rows: list[list[float]]
) -> None:
    values = [
        Value(0.0, 2, 2, seeds=dict(zip("01", results, strict=True)), rounds=rounds)
        for results, rounds in ((short, 5), (long, 30))
    ]
    assert values_by_seed(values).tolist() == rows
