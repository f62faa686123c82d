"""Computes the numbers of a table, one row per cell of the table: the content of its CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.intervals import Sample
from cohort.results.names import METRICS, Names
from cohort.results.series import (
    is_generated,
    label_columns,
    read_metric,
    value_per_cell,
    values_by_client,
)
from cohort.results.tables.best import inseparable
from cohort.results.tables.compare import compare
from cohort.results.tables.spec import CLIENT, Table

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame
else:
    pd = lazy("pandas")

NUMBERS = [
    *("metric", "at", "mean", "sd", "low", "high"),
    *("n", "planned", "finished", "diverged", "best"),
]


def measure(table: Table, spec: Mapping[str, Any], metrics_file: str | Path) -> DataFrame:
    """Mean, SD (with n - 1), 95 % interval and counts of runs for each combination of the table's
    labels; `best` is 1 for what cannot be separated from the best.

    Values are in the metric's stored unit. `n` counts the values behind a mean: a diverged run
    counts with the worst value, and `diverged` counts such runs; an unfinished run does not count,
    since its latest value is no final one. Of the `finished` runs, those without a value will never
    have one. A table of several measures has a row for each. If the table names an item of the
    paper, the columns of `compare.py` follow, except for runs on generated data.
    """
    parts = [_measure(one, spec, metrics_file) for one in table.measures()]
    numbers = pd.concat(parts, ignore_index=True)
    if table.top:
        return _highest(numbers, table, table.top)
    return _sorted(numbers, list(table.facets()), Names.of(spec["look"]))


def _measure(table: Table, spec: Mapping[str, Any], metrics_file: str | Path) -> DataFrame:
    metrics = read_metric(metrics_file, table.metric)
    labels = list(table.facets())
    if table.is_by_client():
        cells = values_by_client(metrics, table.metric)
    else:
        cells = value_per_cell(metrics, table.metric, table.at)
    finished = cells["status"].isin(["done", "diverged"])
    counted = cells.assign(value=cells["value"].where(finished), finished=finished)
    counted = counted.assign(diverged=counted["status"] == "diverged")
    if table.minus:
        counted = subtracted(counted, table.minus)
        cells = counted.drop(columns=["diverged", "finished"])
    groups = counted.groupby(labels, sort=False)
    numbers = (
        groups["value"].agg(["mean", "std", "count"]).rename(columns={"std": "sd", "count": "n"})
    )
    samples = [
        Sample(*one) for one in zip(numbers["n"], numbers["mean"], numbers["sd"], strict=True)
    ]
    limits = [one.interval() if one.n > 1 else (np.nan, np.nan) for one in samples]
    best = inseparable(counted, labels, METRICS[table.measured()].better)
    numbers = numbers.assign(
        low=[low for low, _ in limits],
        high=[high for _, high in limits],
        planned=groups.size(),
        finished=groups["finished"].sum(),
        diverged=groups["diverged"].sum(),
        metric=table.measured(),
        at=table.at,
    ).reset_index()
    keys = numbers[labels].itertuples(index=False, name=None)
    numbers = numbers.assign(best=[int(key in best) for key in keys])[[*labels, *NUMBERS]]
    return (
        compare(numbers, table, spec, cells)
        if table.paper and not is_generated(metrics)
        else numbers
    )


def _highest(numbers: DataFrame, table: Table, count: int) -> DataFrame:
    """The clients with the highest values of the table's own metric, the highest first, in each
    combination of the other labels."""
    labels = list(table.facets())
    own = numbers[numbers["metric"] == table.metric].sort_values("mean", ascending=False)
    others = [label for label in labels if label != CLIENT]
    best = own.groupby(others, sort=False).head(count)[labels]
    places = {key: place for place, key in enumerate(best.itertuples(index=False, name=None))}
    order = [places.get(key, -1) for key in numbers[labels].itertuples(index=False, name=None)]
    kept = numbers.assign(order=order)[np.array(order) >= 0]
    return kept.sort_values("order", kind="stable").drop(columns="order").reset_index(drop=True)


def subtracted(cells: DataFrame, minus: Mapping[str, Mapping[str, str]]) -> DataFrame:
    """Subtract from each cell the value of its partner; keep the cells that have one.

    `minus` maps values of one label to those of their partners: `{strategy: {loss: fedavg}}`. A
    partner has the same seed and all other labels in common.
    """
    ((label, bases),) = minus.items()
    others = [name for name in label_columns(cells) if name not in (label, "diverged", "finished")]
    ends = {"value": "base", "diverged": "base_diverged", "finished": "base_finished"}
    partners = cells.rename(columns=ends)[[label, *others, *ends.values()]]
    mine = cells[cells[label].isin(list(bases))]
    mine = mine.assign(partner=mine[label].map(bases)).merge(
        partners.rename(columns={label: "partner"}),
        on=["partner", *others],
        how="left",
        validate="many_to_one",
    )
    diverged = mine["diverged"] | mine["base_diverged"].eq(True)
    finished = mine["finished"] & mine["base_finished"].eq(True)
    value = mine["value"] - mine["base"]
    return mine.assign(value=value, diverged=diverged, finished=finished)[list(cells.columns)]


def _sorted(numbers: DataFrame, labels: list[str], names: Names) -> DataFrame:
    orders = {label: names.ordered(label, numbers[label]) for label in labels}
    return numbers.sort_values(
        labels,
        key=lambda column: column.map(orders[str(column.name)].index),
        kind="stable",  # measures of one label stay in their order
        ignore_index=True,
    )
