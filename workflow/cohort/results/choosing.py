"""The values of runs, or of clients, by which a measure compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohort.results.measure import CLIENT, Measure
from cohort.results.series import (
    runs_without,
    subtract_partners,
    value_per_cell,
    values_by_client,
)

if TYPE_CHECKING:
    from pandas import DataFrame


def run_values(measure: Measure, metrics: DataFrame) -> DataFrame:
    """One row per run, or per client, with its value if the run has ended."""
    metrics = runs_without(metrics, measure.left_out)
    if CLIENT in measure.labels:
        cells = values_by_client(metrics, measure.metric)
    else:
        cells = value_per_cell(metrics, measure.metric, measure.at)
    finished = cells["status"].isin(["done", "diverged"])
    cells = cells.assign(
        value=cells["value"].where(finished),
        finished=finished,
        diverged=cells["status"] == "diverged",
    )
    return subtract_partners(cells, measure.minus) if measure.minus else cells
