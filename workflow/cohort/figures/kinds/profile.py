"""One value of each client, or of each class, side by side: how uneven they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cohort.figures.look import BAND_OPACITY
from cohort.metrics.names import BY_CLASS, BY_CLIENT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

PROFILES = {"client": BY_CLIENT, "class": BY_CLASS}
MANY = {"client": "Clients", "class": "Classes"}
COLUMN = {"client": "client", "class": "label"}  # of the metrics
BAR = 0.8  # of the distance between two places is taken by a bar


def placed(rows: DataFrame, x: str, order: str, facets: Sequence[str]) -> DataFrame:
    """The rows with the `place` of each: its rank within its run, or its number; numbered clients are those of the first seed alone."""
    number = COLUMN[x]
    if order == "value":
        rows = rows.sort_values(["digest", "value", number], ascending=[True, False, True])
        return rows.assign(place=rows.groupby("digest").cumcount() + 1)
    if x == "client":
        seeds = rows["seed"].astype(int)
        rows = rows[seeds == seeds.groupby([rows[label] for label in facets]).transform("min")]
    return rows.assign(place=rows[number].astype(int)).sort_values(["digest", "place"])


def paint_profile(axes: Axes, runs: DataFrame, color: str, dash: object, *, filled: bool) -> None:
    """The means over the runs and their standard deviation: bars where `filled`, else an outline."""
    if not len(runs):
        return
    points = runs.groupby("place")["value"].agg(["mean", "std"])
    edges = [points.index[0] - 0.5, *(points.index + 0.5)]
    if filled:
        axes.bar(points.index, points["mean"], BAR, color=color, linewidth=0)
        axes.grid(visible=False, axis="x")
    else:
        axes.stairs(
            points["mean"], edges, baseline=None, color=color, linestyle=dash, linewidth=1.3
        )
    low, high = (points["mean"] - points["std"]).clip(lower=0), points["mean"] + points["std"]
    axes.stairs(high, edges, baseline=low, fill=True, color=color, alpha=BAND_OPACITY, linewidth=0)
