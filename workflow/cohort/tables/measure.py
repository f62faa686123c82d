"""The numbers of a table, one line for each of its cells: what the CSV holds and what every other form is laid out from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.metrics.names import Names
from cohort.metrics.summary import is_generated, label_columns, read_metric, value_per_cell
from cohort.tables.compare import compare
from cohort.tables.spec import Table

if TYPE_CHECKING:
    from pandas import DataFrame

NUMBERS = ["metric", "at", "mean", "sd", "n", "planned", "diverged"]


def measure(table: Table, spec: Mapping[str, Any], metrics_file: str | Path) -> DataFrame:
    """The labels of the rows and the column, then metric, at, mean, sd, n, planned, diverged; in the stored unit of the metric. A table of
    several measures has a line for each of them.

    n counts the values behind the mean. A diverged run counts with what it measured before it diverged, if anything; `diverged` says how
    many there are. An unfinished run is not counted: its latest value would pass for a final one. Standard deviations divide by n - 1.
    Where the table names an item of the paper, the columns of compare.py follow, unless the runs were made with generated data.
    """
    import pandas as pd

    parts = [_measure(one, spec, metrics_file) for one in table.measures()]
    return _sorted(
        pd.concat(parts, ignore_index=True), list(table.facets()), Names.of(spec["look"])
    )


def _measure(table: Table, spec: Mapping[str, Any], metrics_file: str | Path) -> DataFrame:
    metrics = read_metric(metrics_file, table.metric)
    labels = list(table.facets())
    cells = value_per_cell(metrics, table.metric, table.at)
    counted = cells.assign(value=cells["value"].where(cells["status"].isin(["done", "diverged"])))
    counted = counted.assign(diverged=counted["status"] == "diverged")
    if table.minus:
        counted = subtracted(counted, table.minus)
        cells = counted.drop(columns="diverged")
    groups = counted.groupby(labels, sort=False)
    numbers = (
        groups["value"].agg(["mean", "std", "count"]).rename(columns={"std": "sd", "count": "n"})
    )
    numbers = numbers.assign(
        planned=groups.size(),
        diverged=groups["diverged"].sum(),
        metric=table.measured(),
        at=table.at,
    )
    numbers = numbers.reset_index()[[*labels, *NUMBERS]]
    return (
        compare(numbers, table, spec, cells)
        if table.paper and not is_generated(metrics)
        else numbers
    )


def subtracted(cells: DataFrame, minus: Mapping[str, Mapping[str, str]]) -> DataFrame:
    """The cells with a partner, the value of that subtracted from theirs: the cell that differs in this one label, and not in its seed."""
    ((label, bases),) = minus.items()
    others = [name for name in label_columns(cells) if name not in (label, "diverged")]
    partners = cells.rename(columns={"value": "base", "diverged": "base_diverged"})[
        [label, *others, "base", "base_diverged"]
    ]
    mine = cells[cells[label].isin(list(bases))]
    mine = mine.assign(partner=mine[label].map(bases)).merge(
        partners.rename(columns={label: "partner"}),
        on=["partner", *others],
        how="left",
        validate="one_to_one",
    )
    diverged = mine["diverged"] | mine["base_diverged"].eq(True)
    return mine.assign(value=mine["value"] - mine["base"], diverged=diverged)[list(cells.columns)]


def _sorted(numbers: DataFrame, labels: list[str], names: Names) -> DataFrame:
    places = {
        label: {value: place for place, value in enumerate(names.ordered(label, numbers[label]))}
        for label in labels
    }
    return numbers.sort_values(
        labels, key=lambda column: column.map(places[str(column.name)]), ignore_index=True
    )
