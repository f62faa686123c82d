"""Values at a round, and rounds at a value, worked out by hand."""

from math import inf, nan

import pytest

from cohort.results.claims.values import Value, on_common_seeds, value_at
from tests.results.claims.samples import frame

CURVE = {100: 0.1, 200: 0.3, 400: 0.2, 900: 0.5, 1300: 0.4}
LOSS = {1: 4.0, 5: 2.6, 9: 2.5, 12: 3.0}
ACCURACY = "test_accuracy"


@pytest.mark.parametrize(
    ("at", "values", "status", "metric", "value"),
    [
        ("99", CURVE, "done", ACCURACY, nan),  # nothing was evaluated before it
        ("first 0.3", CURVE, "done", ACCURACY, 200),
        ("first 0.31", CURVE, "done", ACCURACY, 900),
        ("first 0.6", CURVE, "done", ACCURACY, inf),
        ("first 0.3", CURVE | {1300: nan}, "diverged", ACCURACY, inf),  # its model is worth nothing
        ("first 0.6", CURVE, "unfinished", ACCURACY, nan),  # it may yet
        ("first 0.6", {}, "missing", ACCURACY, nan),
        ("first 0.1", {}, "diverged", ACCURACY, inf),  # before its first evaluation
        ("first 2.5", LOSS, "done", "test_loss", 9),  # a loss gets there from above
        ("first 2.4", LOSS, "done", "test_loss", inf),
        ("first 2.4", {}, "done", "test_loss", nan),  # without the metric
    ],
)
def test_a_value(at: str, values: dict[int, float], status: str, metric: str, value: float) -> None:
    metrics = frame([({"seed": 0}, status, values)], metric).assign(classes=4)
    (actual,) = value_at(metrics, metric, at)["value"]
    assert actual == pytest.approx(value, nan_ok=True)
    if at.startswith("first"):  # a cheaper run's rounds stand for those of the full scale
        (actual,) = value_at(metrics.assign(share=0.1), metric, at)["value"]
        assert actual == pytest.approx(10 * value, nan_ok=True)


@pytest.mark.parametrize(
    ("short", "long", "rows"),
    [
        ((5, 3), (inf, 20), [[5, 3], [31, 20]]),  # the longer run is known for 30 rounds
        ((inf, 3), (20, 20), [[6, 3], [6, 6]]),  # the shorter only for 5
        ((inf, 3), (inf, 20), [[6, 3], [6, 6]]),
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
    assert on_common_seeds(values)[0].tolist() == rows
