"""Profiles: one value of each client, or of each class, that show how uneven they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy
from cohort.results.figures.style import BAND, LINE, STATISTICS, deviation_limits
from cohort.results.names import BY_CLASS, BY_CLIENT

if TYPE_CHECKING:
    import seaborn
    from matplotlib.axes import Axes
    from pandas import DataFrame
else:
    seaborn = lazy("seaborn")

PROFILES = {"client": BY_CLIENT, "class": BY_CLASS}
MANY = {"client": "Clients", "class": "Classes"}
COLUMN = {"client": "client", "class": "label"}  # of the metrics
BAR = 0.8  # the share of the distance between two places that a bar takes


def with_places(rows: DataFrame, x: str, order: str, facets: Sequence[str]) -> DataFrame:
    """Add the column `place`: the rank of a client or class within its run, or its number.

    Clients by number are those of the first seed only, since other seeds deal other shards.
    """
    number = COLUMN[x]
    if order == "value":
        rows = rows.sort_values(["digest", "value", number], ascending=[True, False, True])
        return rows.assign(place=rows.groupby("digest").cumcount() + 1)
    if x == "client":
        seeds = rows["seed"].astype(int)
        rows = rows[seeds == seeds.groupby([rows[label] for label in facets]).transform("min")]
    return rows.assign(place=rows[number].astype(int)).sort_values(["digest", "place"])


def draw_profile(
    axes: Axes, runs: DataFrame, unit: str, line: dict[str, Any], *, is_filled: bool
) -> None:
    """Draw means over runs, as bars or as an outline, with a band of one standard deviation.

    The outline and the band are matplotlib's stairs: seaborn has neither an outline without a
    histogram nor a band over bars.
    """
    points = runs.groupby("place")["value"].agg(STATISTICS)
    edges = [points.index[0] - 0.5, *(points.index + 0.5)]
    if is_filled:
        seaborn.barplot(
            runs,
            x="place",
            y="value",
            errorbar=None,
            color=line["color"],
            saturation=1,
            linewidth=0,
            width=BAR,
            native_scale=True,
            ax=axes,
        )
        axes.grid(visible=False, axis="x")
    else:
        axes.stairs(points["mean"], edges, baseline=None, linewidth=LINE, **line)
    low, high = deviation_limits(points, unit)
    axes.stairs(high, edges, baseline=low, fill=True, color=line["color"], **BAND)
