"""One value of each run over the values of a label: the mean of the seeds as a line, their spread as a band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.figures.kind import Averaging
from cohort.figures.look import BAND_OPACITY, CROSS, PAPER_GRAY, paper_name
from cohort.metrics.names import BY_ROUND, METRICS
from cohort.metrics.summary import At, value_per_cell

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from cohort.figures.look import Look
    from cohort.metrics.paper_match import Beside

PAPER_POINT: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 4,
    "markerfacecolor": "none",
    "markeredgewidth": 0.8,
}

MARKS: dict[str, dict[str, Any]] = {
    "unfinished": {"markerfacecolor": "white"},
    "diverged": {"marker": "x"},
}


@dataclass(frozen=True, kw_only=True)
class Lines(Averaging):
    """A line for each hue over the values of a label: at their own places where all of them are numbers, else one after another.

    Where a value is missing the line goes on to the next one.
    """

    name: ClassVar[str] = "lines"

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    at: At = parameter(
        "last",
        help="the last evaluation, the highest, the lowest, the mean, or the mean of the last ten rounds",
    )
    x: str = parameter(help="the label along the x axis")
    paper: str = parameter(
        "",
        help="the item whose values are drawn as diamonds, as resources/paper_values/{study}.csv calls it",
    )

    def shown(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.facets(), self.x]))

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        hues = look.ordered(self.hue, cells[self.hue])
        colors = look.colors(self.hue, hues)
        places = self._places(cells, look)
        for hue in hues:
            runs = panel[panel[self.hue] == hue]
            if len(runs):
                style = {
                    "color": colors[hue],
                    "linestyle": look.dash(self.hue, hue),
                    "marker": look.point(self.hue, hue),
                }
                self._line(axes, runs.assign(place=runs[self.x].map(places)), style)
        self.refer(axes)
        names = [look.value(self.x, x) for x in places]
        axes.set_xticks(list(places.values()), names)

    def _line(self, axes: Axes, runs: DataFrame, style: dict[str, Any]) -> None:
        points = runs.groupby("place")["value"].agg(["mean", "std"])
        axes.plot(points.index, points["mean"], markersize=2.5, **style)
        low, high = points["mean"] - points["std"], points["mean"] + points["std"]
        axes.fill_between(
            points.index, low, high, color=style["color"], alpha=BAND_OPACITY, linewidth=0
        )
        for status, mark in MARKS.items():
            marked = points.loc[points.index.isin(runs.loc[runs["status"] == status, "place"])]
            axes.plot(
                marked.index,
                marked["mean"],
                **style | {"linestyle": "none", "markersize": 5} | mark,
            )

    def _places(self, cells: DataFrame, look: Look) -> dict[str, float]:
        """Where each value of the label lies."""
        values = look.ordered(self.x, cells[self.x])
        try:
            return {value: float(value) for value in values}
        except ValueError:
            return {value: float(place) for place, value in enumerate(values)}

    def paint_paper(self, axes: Axes, beside: list[Beside], cells: DataFrame, look: Look) -> None:
        colors, places = (
            look.colors(self.hue, look.ordered(self.hue, cells[self.hue])),
            self._places(cells, look),
        )
        for one in beside:
            value = one.values[0].value * METRICS[self.metric].scale
            axes.plot(
                places[one.labels[self.x]], value, color=colors[one.labels[self.hue]], **PAPER_POINT
            )
            axes.plot(
                [], [], color=PAPER_GRAY, label=paper_name(one.values[0].source), **PAPER_POINT
            )

    def x_title(self, look: Look) -> str:
        return look.title(self.x)

    def handle(self, value: str, look: Look, color: str) -> Artist:
        from matplotlib.lines import Line2D

        return Line2D(
            [],
            [],
            color=color,
            linestyle=look.dash(self.hue, value),
            marker=look.point(self.hue, value),
            markersize=2.5,
        )

    def remarks(self, statuses: set[str]) -> list[str]:
        crosses = [f"{CROSS}: a run diverged"] if "diverged" in statuses else []
        return [*crosses, *(["white: with unfinished runs"] if "unfinished" in statuses else [])]

    def mark(self) -> str:
        return "point"
