"""Metrics of what exists are collected again when, and only when, records or checkpoints changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.pipeline import partial_metrics
from cohort.pipeline.partial_metrics import collect_partial
from cohort.plan import Plan
from cohort.results.collect import Result, read_result
from cohort.results.series import read_metric
from tests.commands.conftest import finish, plan  # noqa: F401 (a fixture)


def test_what_did_not_change_is_not_read_again(plan: Plan, monkeypatch: pytest.MonkeyPatch):  # noqa: F811
    read: list[str] = []

    def counted(path: str) -> Result:
        read.append(path)
        return read_result(path)

    monkeypatch.setattr(partial_metrics.collect, "read_result", counted)
    first, second, *_ = plan.cells.values()
    finish(first, 0.5)

    def accuracies() -> list[float]:
        rows = read_metric(collect_partial(plan, "six", "one"), "test_accuracy")
        return sorted(rows.loc[rows["round"] == 10, "value"])

    assert (accuracies(), read) == ([0.5], [first.path])
    assert (accuracies(), read) == ([0.5], [first.path])
    finish(second, 0.25)
    assert (accuracies(), read) == ([0.25, 0.5], [first.path, first.path, second.path])
    finish(first, 0.75)
    assert accuracies() == [0.25, 0.75]
    Path(second.path).unlink()
    assert accuracies() == [0.75]
    table = Path(collect_partial(plan, "six", "one"))
    table.write_bytes(table.read_bytes()[:-1])
    assert accuracies() == [0.75]  # a damaged table is made anew
