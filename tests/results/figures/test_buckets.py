"""Curves in buckets of rounds, by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from cohort.core.errors import UserError
from cohort.results.figures.kinds.curves import Curves

BUCKETS = Curves(metric="test_accuracy", buckets=10)


def runs(*cells: tuple[str, int, float]) -> pd.DataFrame:
    """Runs as (digest, last round, share), whose accuracy in round r is r percent."""
    rows = [
        {
            "digest": digest,
            "strategy": "fedavg",
            "status": "done",
            "metric": "test_accuracy",
            "round": round,
            "value": round / 100,
            "share": share,
        }
        for digest, last, share in cells
        for round in range(1, last + 1)
    ]
    return pd.DataFrame(rows)


def points(rows: pd.DataFrame) -> list[tuple[int, float]]:
    return list(zip(rows["round"], rows["value"].round(9), strict=True))


def test_the_value_at_round_10_is_the_mean_of_rounds_1_to_10():
    assert points(BUCKETS.measure(runs(("a", 30, 1.0)))) == [(10, 5.5), (20, 15.5), (30, 25.5)]


def test_a_bucket_that_a_run_ended_within_is_left_out():
    assert points(BUCKETS.measure(runs(("a", 29, 1.0)))) == [(10, 5.5), (20, 15.5)]
    assert points(BUCKETS.measure(runs(("a", 9, 1.0)))) == []


def test_buckets_shrink_with_a_shorter_run():
    """Of a fifth of the rounds, two rounds make a bucket; of a hundredth, one does."""
    assert points(BUCKETS.measure(runs(("a", 6, 0.2)))) == [(2, 1.5), (4, 3.5), (6, 5.5)]
    assert points(BUCKETS.measure(runs(("a", 2, 0.01)))) == [(1, 1.0), (2, 2.0)]


def test_runs_are_kept_apart():
    result = BUCKETS.measure(runs(("a", 10, 1.0), ("b", 20, 1.0)))
    assert result["digest"].tolist() == ["a", "b", "b"]


def test_without_shares_in_older_metrics():
    assert points(BUCKETS.measure(runs(("a", 10, 1.0)).drop(columns="share"))) == [(10, 5.5)]


def test_buckets_and_smoothing_exclude_each_other():
    with pytest.raises(UserError, match="smoothing and buckets cannot be combined"):
        Curves(metric="test_accuracy", buckets=10, smoothing=3).check()
