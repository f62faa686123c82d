"""One value per run over a label's values: the mean over seeds as a line, their SD as a band."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.results.at import AT_HELP, AT_SCHEMA
from cohort.results.figures.kind import Averaging
from cohort.results.figures.style import (
    CROSS,
    LETTER,
    PAPER_GRAY,
    SIDES,
    STATISTICS,
    Style,
    draw_means,
    grid_cell,
    name_places,
    paper_name,
)
from cohort.results.names import BY_ROUND, METRICS
from cohort.results.paper_match import PaperMatch
from cohort.results.series import value_per_cell

if TYPE_CHECKING:
    import matplotlib.ticker as mpl_ticker
    from matplotlib.axes import Axes
    from pandas import DataFrame
else:
    mpl_ticker = lazy("matplotlib.ticker")

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
    """A line per hue over the values of a label, which lie at their numbers, or one after another
    if any is not a number or their names would overlap.

    A missing value is skipped: the line connects its neighbors.
    """

    name: ClassVar[str] = "lines"
    picture: ClassVar[str] = "Lines"
    mark = "point"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": f"{CROSS}: a run diverged",
        "unfinished": "white: with unfinished runs",
    }

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    x: str = parameter(help="the label along the x axis")
    log: bool = parameter(False, help="whether the y axis is logarithmic")
    paper: str = parameter(
        "",
        help="the item of the paper whose values are drawn as diamonds, as "
        "resources/paper_values/{study}.csv calls it",
    )

    def shown(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.facets(), self.x]))

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        positions = self._positions(axes, cells, style)
        for hue, color, runs in self.runs_by_hue(panel, cells, style):
            line = self.line(hue, style, color) | {"markeredgecolor": color}
            self._draw_line(axes, runs.assign(position=runs[self.x].map(positions)), line)
        self.draw_reference(axes)
        if self.log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(mpl_ticker.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(mpl_ticker.NullFormatter())
        names = [style.value(self.x, x) for x in positions]
        if list(positions.values()) == list(range(len(positions))):
            name_places(axes, names)
        else:
            axes.set_xticks(list(positions.values()), names)

    def _draw_line(self, axes: Axes, runs: DataFrame, line: dict[str, Any]) -> None:
        statistics = runs.groupby("position")["value"].agg(STATISTICS)
        draw_means(axes, statistics, METRICS[self.metric].unit, line)
        means = statistics["mean"]
        for status, mark in MARKS.items():
            marked = means[means.index.isin(runs.loc[runs["status"] == status, "position"])]
            axes.plot(marked.index, marked, **line | {"linestyle": "none", "markersize": 5} | mark)

    def _positions(self, axes: Axes, cells: DataFrame, style: Style) -> dict[str, float]:
        values = style.ordered(self.x, cells[self.x])
        try:
            values = sorted(values, key=float)
        except ValueError:
            return {value: float(index) for index, value in enumerate(values)}
        inches = (grid_cell(axes)[0] - SIDES) / (float(values[-1]) - float(values[0]) or 1.0)
        for left, right in itertools.pairwise(values):
            letters = (len(style.value(self.x, left)) + len(style.value(self.x, right))) / 2 + 1
            if (float(right) - float(left)) * inches < letters * LETTER:
                return {value: float(index) for index, value in enumerate(values)}
        return {value: float(value) for value in values}

    def draw_paper(
        self, axes: Axes, matches: list[PaperMatch], cells: DataFrame, style: Style
    ) -> None:
        colors = self.colors(cells, style)
        positions = self._positions(axes, cells, style)
        for match in matches:
            x, color = positions[match.labels[self.x]], colors[match.labels[self.hue]]
            value = match.values[0].value * METRICS[self.metric].scale
            axes.plot(x, value, color=color, **PAPER_POINT)
            label = paper_name(match.values[0].source)
            axes.plot([], [], color=PAPER_GRAY, label=label, **PAPER_POINT)

    def x_title(self, style: Style) -> str:
        return style.title(self.x)

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        marker = {"marker": style.marker(self.hue, value), "markersize": 2.5}
        return super().line(value, style, color) | style.stroke(self.hue, value) | marker
