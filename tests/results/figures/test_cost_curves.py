"""Curves over a cost, worked out by hand for two runs with rounds of different length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cohort.results.figures.draw import make_figure
from cohort.results.figures.kinds.curves import CostCurves, mean_over_cost
from cohort.results.files import write_metrics

SECONDS = {0: [1, 1, 1, 1], 1: [2, 2, 2, 2]}  # of each round, by seed
ACCURACY = {0: {2: 0.2, 4: 0.6}, 1: {2: 0.4, 4: 0.8}}  # by seed and evaluated round


def table() -> pd.DataFrame:
    rows = []
    for seed, durations in SECONDS.items():
        cell = {
            "digest": f"k{seed}",
            "study": "s",
            "experiment": "main",
            "strategy": "fedavg",
            "seed": str(seed),
            "status": "done",
            "classes": 10,
        }
        rows += [
            cell | {"metric": "simulated_seconds", "round": round, "value": value}
            for round, value in enumerate(durations, start=1)
        ]
        rows += [
            cell | {"metric": "test_accuracy", "round": round, "value": value}
            for round, value in ACCURACY[seed].items()
        ]
    return pd.DataFrame(rows)


def test_a_value_counts_from_the_cost_at_which_it_was_measured() -> None:
    rows = CostCurves(metric="test_accuracy").measure(table())
    assert rows.sort_values(["digest", "round"])["spent"].tolist() == [2, 4, 4, 8]
    values = mean_over_cost(rows)
    # Seed 0 is evaluated after 2 and 4 s, seed 1 after 4 and 8 s: both have values from 4 s on, and seed 0 ends there.
    assert set(values.index) == {4}
    assert values["mean"].iloc[-1] == pytest.approx(50)
    assert values["std"].iloc[-1] == pytest.approx(np.sqrt(200))


@pytest.mark.parametrize("status", ["diverged", "unfinished"])
def test_a_run_that_stopped_keeps_its_last_value_while_others_go_on(status: str) -> None:
    frame = table()
    frame.loc[frame["seed"] == "0", "status"] = status
    values = mean_over_cost(CostCurves(metric="test_accuracy").measure(frame))
    assert (values.index[-1], values["mean"].iloc[-1]) == (8, pytest.approx(70))  # of 60 and 80 %


def test_the_latest_evaluations_are_averaged() -> None:
    rows = CostCurves(metric="test_accuracy", smoothing=2).measure(table())
    assert rows.sort_values(["digest", "round"])["value"].tolist() == pytest.approx(
        [20, 40, 40, 60]
    )


def test_a_drawing_names_the_cost_and_not_its_round(tmp_path: Path) -> None:
    write_metrics(tmp_path / "metrics.parquet", table().assign(client=None), {})
    spec = {
        "kind": "cost_curves",
        "metric": "test_accuracy",
        "look": {"orders": {"strategy": ["fedavg"]}, "strategies": ["fedavg"]},
    }
    (axes,) = make_figure(spec, tmp_path / "metrics.parquet").axes
    assert axes.get_xlabel() == "Simulated time (s)"
