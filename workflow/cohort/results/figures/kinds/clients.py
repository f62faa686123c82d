"""What single clients have: one metric against another, and how many samples of each class."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.figures.kind import Kind
from cohort.results.figures.style import COLORS, ENDS, SIDES, Style, grid_cell, number_places
from cohort.results.names import BY_CLIENT, METRICS
from cohort.results.series import finite_rows
from cohort.settings import SHARD_KEYS

if TYPE_CHECKING:
    import seaborn
    from matplotlib.axes import Axes
    from pandas import DataFrame, Series
else:
    seaborn = lazy("seaborn")

POINT: dict[str, Any] = {"s": 9, "alpha": 0.65, "linewidth": 0}
FEWEST_CLIENTS = 3  # for which a rank correlation is shown
RHO = "\N{GREEK SMALL LETTER RHO}"
POINTS = 72.0  # in an inch
SMALLEST, LARGEST = 1.2, 14.0  # points: the diameter of the bubbles of few and of most samples


@dataclass(frozen=True, kw_only=True)
class Scatter(Kind):
    """A point for each client of each run, and Spearman's rank correlation per color and panel.

    Nothing is averaged: the clients of all seeds are in one cloud.
    """

    name: ClassVar[str] = "scatter"
    mark = "color"

    metric: str = parameter(enum=BY_CLIENT, help="the metric on the y axis")
    x: str = parameter(enum=BY_CLIENT, help="the metric on the x axis")

    def check(self) -> None:
        if self.also:
            raise UserError(f"a scatter of clients cannot show {self.also[0]} too; leave out also")
        if self.x == self.metric:
            raise UserError(
                f"a scatter of {self.metric} against itself says nothing; choose another x"
            )

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.x)

    def measure(self, metrics: DataFrame) -> DataFrame:
        key = ["digest", "client"]
        across = finite_rows(metrics, self.x)[[*key, "value"]].rename(columns={"value": "x"})
        rows = finite_rows(metrics, self.metric).merge(across, on=key)
        scale, x_scale = METRICS[self.metric].scale, METRICS[self.x].scale
        return rows.assign(value=rows["value"] * scale, x=rows["x"] * x_scale)

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        colors = self.colors(cells, style)
        seaborn.scatterplot(
            panel,
            x="x",
            y="value",
            hue=self.hue,
            hue_order=list(colors),
            palette=colors,
            legend=False,
            ax=axes,
            **POINT,
        )
        correlations = {
            self.handle(hue, style, color): f"{RHO} = {correlation(points['x'], points['value'])}"
            for hue, color, points in self.runs_by_hue(panel, cells, style)
        }
        axes.legend(
            list(correlations),
            list(correlations.values()),
            loc="best",
            handlelength=0.8,
            handletextpad=0.4,
            borderpad=0.2,
            fontsize=7,
        )

    def x_title(self, style: Style) -> str:
        return METRICS[self.x].label

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        return {"color": color, "linestyle": "none", "marker": "o", "markersize": 3.5}

    def remarks(self, measured: DataFrame) -> list[str]:
        return [f"{RHO}: Spearman's rank correlation of the points"]


def correlation(first: Series[float], second: Series[float]) -> str:
    """Spearman's rank correlation as text, or `undefined` for few or constant values."""
    if len(first) < FEWEST_CLIENTS or first.nunique() < 2 or second.nunique() < 2:
        return "undefined"
    rho = first.corr(second, method="spearman")
    return f"{rho:.2f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True, kw_only=True)
class Shards(Kind):
    """A bubble chart of shards: clients along the x axis, classes up the y axis, samples as the
    area of a bubble, which even for one sample is large enough to be seen.

    Of several seeds the first one with a record is drawn; cells with the same shards, such as those
    of other strategies, count as one. All panels have one scale of samples. The panels of a row
    share their y axis, so use `rows: dataset` for data sets with different numbers of classes.
    """

    name: ClassVar[str] = "shards"
    mark = "panel"
    has_legend = False
    shared_y: ClassVar[bool | Literal["row"]] = "row"
    height: ClassVar[tuple[float, float]] = (0.8, 2.7)

    metric: str = parameter("label_count", enum=["label_count"], help="what is drawn")

    def check(self) -> None:
        if self.also:
            raise UserError(
                f"shards have no rounds, so they cannot show {self.also[0]} too; leave out also"
            )
        if self.hue != "strategy":
            raise UserError(
                f"shards have no hue; leave out hue: {self.hue}, or make it panels (columns, rows)"
            )

    def facets(self) -> tuple[str, ...]:
        return self.panels()

    def shown(self) -> tuple[str, ...]:
        return self.facets() or ("seed",)

    def ignores(self, label: str) -> bool:
        return label not in SHARD_KEYS

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = finite_rows(metrics, self.metric)
        runs = rows.drop_duplicates("digest")
        runs = runs.assign(number=runs["seed"].astype(int)).sort_values(["number", "digest"])
        first = runs.drop_duplicates(list(self.facets())) if self.facets() else runs.head(1)
        rows = rows[rows["digest"].isin(first["digest"])].astype({"client": int, "label": int})
        return rows.assign(
            most_value=rows["value"].max(),
            most_clients=rows["client"].max() + 1,
            most_classes=rows["label"].max() + 1,
        )

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        most, clients, classes = panel.iloc[0][["most_value", "most_clients", "most_classes"]]
        width, height = grid_cell(axes)
        room = POINTS * min((width - SIDES) / clients, (height - ENDS) / classes)
        largest = min(room, LARGEST) ** 2
        look: dict[str, Any] = {"color": COLORS[0], "linewidth": 0}
        held = panel[panel["value"] > 0]
        areas = np.maximum(largest * held["value"] / most, SMALLEST**2)
        axes.scatter(held["client"], held["label"], areas, **look)
        for value, name in legend_samples(most).items():
            axes.scatter([], [], largest * value / most, label=name, **look)
        top = max(axes.get_ylim()[1], panel["label"].max() + 0.6)
        axes.set(xlim=(-0.6, clients - 0.4), ylim=(-0.6, top))
        number_places(axes, "x", clients)
        number_places(axes, "y", classes)

    def x_title(self, style: Style) -> str:
        return "Client"

    def y_title(self) -> str:
        return "Class"

    def remarks(self, measured: DataFrame) -> list[str]:
        return ["each panel shows its first seed"]


def legend_samples(maximum: float) -> dict[int, str]:
    """Round numbers of samples for the legend, with their texts: about the maximum, a quarter and a
    sixteenth of it."""
    values = set()
    for value in (maximum / part for part in (16, 4, 1) if maximum >= part):
        power = 10 ** floor(log10(value))
        values.add(int(value // power * power))
    return {value: f"{value:,} sample{'' if value == 1 else 's'}" for value in sorted(values)}
