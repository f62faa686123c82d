"""The tables of a release as pandas frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import pandas as pd
import pyarrow as pa


@dataclass(frozen=True)
class RunFrames:
    """Finished runs as tidy pandas frames with the columns that docs/records.md lists: `runs` has a
    row per run, the others per value by round, client of a run, round, class, and local step. The
    column `digest` says whose row it is."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    clients: pd.DataFrame
    cohorts: pd.DataFrame
    classes: pd.DataFrame
    profiles: pd.DataFrame

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> RunFrames:
        """Convert the tables of a release, given by name; one that is missing has no rows."""
        empty = pa.table({"digest": pa.array([], pa.string())})
        return cls(*(_frame(tables.get(field.name, empty)) for field in fields(cls)))

    def metric(self, *names: str) -> pd.DataFrame:
        """The values of these metrics by round, one row each, with all settings of its run."""
        return self.curves[self.curves["metric"].isin(names)].merge(self.runs, on="digest")


def _frame(table: pa.Table) -> pd.DataFrame:
    """A table as a frame with texts in place of a dictionary's codes, as seaborn likes it."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, column)
    return table.to_pandas()
