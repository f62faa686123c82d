"""What runs cost until they are as accurate as random selection is in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohort.core.lazy import lazy
from cohort.results.measure import BASELINE
from cohort.results.series import finite_rows, label_columns, value_per_cell

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame, Series
else:
    pd = lazy("pandas")

ACCURACY = "test_accuracy"
REACHES = "reaches_fedavg"
COSTS = {"simulated_seconds": "seconds_to_fedavg", "bytes_down": "bytes_down_to_fedavg"}


def costs_to_baseline(metrics: DataFrame) -> DataFrame:
    """Rows that say whether each finished run reaches the accuracy of FedAvg's last ten rounds in
    its setting and with its seed, and what it has cost by then.

    A run that diverges, or never reaches it, counts with the highest cost of all runs of its
    setting and seed, since cheap rounds that lead nowhere are no gain. Nothing is said of a setting
    in which FedAvg has no result or diverges.
    """
    if "strategy" not in metrics:
        return metrics.iloc[:0]
    cells = value_per_cell(metrics, ACCURACY, "last-10").set_index("digest")
    cells = cells[cells["status"].isin(["done", "diverged"])]
    contests = _contests(cells[label_columns(metrics)])
    baseline = cells[cells["strategy"] == BASELINE]
    goals = contests.map(baseline["value"].groupby(contests[baseline.index]).first()).dropna()
    accuracies = finite_rows(metrics, ACCURACY)
    is_there = accuracies["value"] >= accuracies["digest"].map(goals).astype(float)
    reached = accuracies[is_there].groupby("digest")["round"].min()
    reached = reached[cells.loc[reached.index, "status"] == "done"]
    values = {REACHES: pd.Series(goals.index.isin(reached.index), goals.index, dtype=float)}
    for cost, name in COSTS.items():
        rows = finite_rows(metrics, cost)
        rows = rows[rows["digest"].isin(goals.index)]
        total = rows.groupby("digest")["value"].sum()
        until = rows[rows["round"].astype(float) <= rows["digest"].map(reached).astype(float)]
        spent = until.groupby("digest")["value"].sum()
        values[name] = spent.reindex(total.index).fillna(total.groupby(contests).transform("max"))
    return _rows(values, metrics)


def _contests(labels: DataFrame) -> Series:
    """The setting and seed of each run: its labels but the strategy and that one's parameters."""
    apart = labels[[name for name in map(str, labels) if name != "strategy" and "." not in name]]
    return pd.Series(map(str, apart.itertuples(index=False, name=None)), labels.index, dtype=str)


def _rows(values: dict[str, Series], metrics: DataFrame) -> DataFrame:
    """The rows of metrics that a run has once, after its last round."""
    heads = metrics.drop_duplicates("digest").set_index("digest")
    last = metrics[metrics["metric"] == ACCURACY].groupby("digest")["round"].max()
    heads = heads.assign(round=last, client=None, label=None)
    parts = [
        heads.loc[column.index].assign(metric=name, value=column).reset_index()
        for name, column in values.items()
    ]
    return pd.concat(parts)[metrics.columns]
