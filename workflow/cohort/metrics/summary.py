"""What figures, tables and the report share: the cells of an experiment, one value for each cell, and how many runs stand behind them.

The input is the tidy metrics of one experiment: one row per (cell, metric, round or client), and one row without a metric for a planned
cell that has no result. pandas is imported inside the functions, because planning imports the kinds of figures and must stay fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame, Series

At = Literal["last", "max", "min", "mean", "last-10"]
FIXED = (
    "digest",
    "study",
    "experiment",
    "status",
    "generated",
    "metric",
    "round",
    "client",
    "label",
    "value",
)
STATUSES = ("done", "diverged", "unfinished", "missing")
NO_VALUE = "\N{EN DASH}"
GENERATED = "generated stand-in data: no reproduction of any paper"


@dataclass(frozen=True)
class Runs:
    """How many runs were planned and what became of them."""

    planned: int
    done: int
    diverged: int
    unfinished: int
    missing: int

    @property
    def phrase(self) -> str:
        """`36 runs`, or `n = 34 of 36 runs (1 diverged, 1 missing)`."""
        noun = "run" if self.planned == 1 else "runs"
        if self.done == self.planned:
            return f"{self.planned} {noun}"
        rest = ", ".join(
            f"{count} {status}" for status in STATUSES[1:] if (count := getattr(self, status))
        )
        return f"n = {self.done} of {self.planned} {noun} ({rest})"


def runs_behind(metrics: DataFrame) -> Runs:
    """Counts the cells of a frame that has at least the columns digest and status."""
    counts = metrics.drop_duplicates("digest")["status"].value_counts()
    return Runs(int(counts.sum()), *(int(counts.get(status, 0)) for status in STATUSES))


def read_metric(file: str | Path, *metrics: str) -> DataFrame:
    """The rows of one metric, or of several, and one other row of each cell that has none, in a fixed order, with labels as text."""
    import pandas as pd

    everything = pd.read_parquet(file)
    wanted = everything["metric"].isin(metrics)
    lacking = (
        ~everything["digest"].isin(everything.loc[wanted, "digest"])
        & ~everything["digest"].duplicated()
    )
    frame = everything[wanted | lacking].sort_values(
        ["digest", "metric", "round", "client"], ignore_index=True
    )
    return frame.assign(**{label: _as_text(frame[label]) for label in label_columns(frame)})


def read_runs(file: str | Path) -> Runs:
    """How many runs stand behind a metrics file."""
    import pandas as pd

    return runs_behind(pd.read_parquet(file, columns=["digest", "status"]))


def is_generated(metrics: DataFrame) -> bool:
    """Whether any run used data that was made up in place of the real."""
    return "generated" in metrics and bool(metrics["generated"].eq(True).fillna(False).any())


def reads_generated(file: str | Path) -> bool:
    """The same of a metrics file."""
    import pandas as pd
    from pyarrow.parquet import read_schema

    return "generated" in read_schema(file).names and is_generated(
        pd.read_parquet(file, columns=["generated"])
    )


def label_columns(metrics: DataFrame) -> list[str]:
    """The columns that tell the cells of an experiment apart: dataset, model, partition, J, strategy, seed and its further axes."""
    return [column for column in metrics.columns if column not in FIXED]


def cells_of(metrics: DataFrame) -> DataFrame:
    """One row for each planned cell: its digest, labels and status."""
    return metrics.drop_duplicates("digest")[
        ["digest", *label_columns(metrics), "status"]
    ].reset_index(drop=True)


def finite_rows(metrics: DataFrame, metric: str) -> DataFrame:
    """The rows of a metric that hold a finite value. A diverged run ends with values that are not finite: they are no measurements."""
    value = metrics["value"]
    return metrics[(metrics["metric"] == metric) & (value.abs() < float("inf"))]


def value_per_cell(metrics: DataFrame, metric: str, at: At) -> DataFrame:
    """One row for each planned cell with its `value`, NaN where there is none.

    `last` is the cell's last evaluation, `last-10` the mean of the evaluations in the ten rounds that end with it, `max`, `min` and `mean`
    are taken over all evaluations. Only finite values count. So a diverged run enters with what it measured before it diverged, and an
    unfinished one as far as it got: `status` tells them apart, and whoever shows the value says so.
    """
    rows = finite_rows(metrics, metric)
    if at in ("max", "min", "mean"):
        values = rows.groupby("digest")["value"].agg(at)
    else:
        end = rows.groupby("digest")["round"].transform("max")
        values = (
            rows[rows["round"] > end - (1 if at == "last" else 10)]
            .groupby("digest")["value"]
            .mean()
        )
    cells = cells_of(metrics)
    return cells.assign(value=cells["digest"].map(values).astype(float))


def label_text(value: Any) -> str:
    """A label's value as text, the same for 1, 1.0 and "1"."""
    if isinstance(value, float):
        return NO_VALUE if value != value else f"{value:g}"
    return str(value)


def _as_text(column: Series) -> list[str]:
    codes, values = column.astype(object).factorize()
    texts = [
        *(label_text(value) for value in values),
        NO_VALUE,
    ]  # the code of a missing value is -1
    return [texts[code] for code in codes]
