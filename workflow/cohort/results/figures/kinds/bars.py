"""One value of each run over a label, as bars or lines: the mean over seeds with its standard
deviation. Bars also show clients or classes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.at import AT_HELP, AT_SCHEMA
from cohort.results.figures.kind import Averaging
from cohort.results.figures.style import (
    BAND,
    CROSS,
    LETTER,
    LINE,
    PAPER_GRAY,
    SIDES,
    STATISTICS,
    Style,
    deviation_limits,
    draw_means,
    grid_cell,
    name_places,
    number_places,
    paper_name,
)
from cohort.results.names import BY_CLASS, BY_CLIENT, BY_ROUND, METRICS, SERIES
from cohort.results.paper import PaperMatch
from cohort.results.series import finite_rows, value_per_cell

if TYPE_CHECKING:
    import matplotlib.colors as mpl_colors
    import matplotlib.patches as mpl_patches
    import matplotlib.ticker as mpl_ticker
    import seaborn
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle
    from pandas import DataFrame
else:
    mpl_colors, mpl_patches = lazy("matplotlib.colors"), lazy("matplotlib.patches")
    mpl_ticker, seaborn = lazy("matplotlib.ticker"), lazy("seaborn")

PROFILES = {"client": BY_CLIENT, "class": BY_CLASS}
MANY = {"client": "Clients", "class": "Classes"}
COLUMN = {"client": "client", "class": "label"}  # of the metrics
GROUP = 0.8  # the share of the distance between two places that bars take
EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0}  # the color is that of hatches
PALE = 0.5  # the share of white in the color of unfinished runs
PAPER_TICK = "#000000"  # visible over bars of any color
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
class ValuePerRun(Averaging):
    """Base of the kinds that show one value of each run over a label."""

    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    x: str = parameter(help="the label along the x axis")
    paper: str = parameter(
        "",
        help="the item of the paper whose values are drawn too, as "
        "resources/paper_values/{study}.csv calls it",
    )

    def shown(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.facets(), self.x]))

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def x_title(self, style: Style) -> str:
        return style.title(self.x)


@dataclass(frozen=True, kw_only=True)
class Bars(ValuePerRun):
    """Grouped bars over the values of a label, or a profile of clients or classes (`x: client`,
    `x: class`), highest value first.

    Profiles are sorted within each run before runs are averaged: the client called 7 differs from
    seed to seed, how uneven the clients are does not. So `order: number` shows the clients of the
    first seed only; classes are the same in every run. Profiles of several hues are outlines, as
    bars of many clients would be thinner than a line.
    """

    name: ClassVar[str] = "bars"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": f"{CROSS}: a run diverged",
        "unfinished": "pale: with unfinished runs",
    }

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT, *BY_CLASS], help="what is drawn")
    also: list[str] | None = parameter(
        None,
        items={"enum": [*BY_ROUND, *BY_CLIENT, *BY_CLASS]},
        minItems=1,
        uniqueItems=True,
        help="further metrics, whose panels are to the right of the first one's; beside those of "
        "clients, those of classes, and the other way round",
    )
    x: str = parameter(help="the label along the x axis, or client, or class")
    order: Literal["value", "number"] = parameter(
        "value", help="the order of clients or classes: the highest value first, or by number"
    )

    def check(self) -> None:
        where, by_run = f"bars over x: {self.x}", PROFILES.get(self.x, BY_ROUND)
        if self.metric not in by_run:
            raise UserError(f"{where} cannot show {self.metric}; choose one of {', '.join(by_run)}")
        allowed = [*BY_CLIENT, *BY_CLASS] if self.is_profile else BY_ROUND
        for metric in self.also or ():
            if metric not in allowed:
                among = ", ".join(allowed)
                raise UserError(f"{where} cannot show {metric} too; choose among {among}")
        if self.paper and self.is_profile:
            raise UserError(
                f"{where} cannot show a paper's values, which are of a whole run; leave paper out"
            )
        if self.order != "value" and not self.is_profile:
            raise UserError(f"{where} are in the study's order; leave out order: {self.order}")

    @property
    def is_profile(self) -> bool:
        """Whether bars stand for clients or classes."""
        return self.x in PROFILES

    def of_metric(self, metric: str) -> Self:
        x = METRICS[metric].by if self.is_profile else self.x
        return replace(super().of_metric(metric), x=x)

    def shown(self) -> tuple[str, ...]:
        return self.facets() if self.is_profile else super().shown()

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The rows to draw; of a profile with the column `place`: the rank of a client or class
        within its run, or its number. Clients by number are those of the first seed only, since
        other seeds deal other shards."""
        if not self.is_profile:
            return super().measure(metrics)
        rows, number = finite_rows(metrics, self.metric), COLUMN[self.x]
        rows = rows.assign(value=rows["value"] * METRICS[self.metric].scale)
        if self.order == "value":
            rows = rows.sort_values(["digest", "value", number], ascending=[True, False, True])
            return rows.assign(place=rows.groupby("digest").cumcount() + 1)
        if self.x == "client":
            seeds, groups = rows["seed"].astype(int), [rows[label] for label in self.facets()]
            rows = rows[seeds == seeds.groupby(groups).transform("min")]
        return rows.assign(place=rows[number].astype(int)).sort_values(["digest", "place"])

    def _is_filled(self, style: Style) -> bool:
        """Whether a profile is drawn as filled bars, for which it has room with a single hue."""
        return len(style.orders.get(self.hue, [])) == 1

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        draw = self._draw_profiles if self.is_profile else self._draw_groups
        draw(axes, panel, cells, style)
        self.draw_reference(axes)

    def _draw_profiles(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        """Draw means over runs, as bars or as an outline, with a band of one standard deviation."""
        for hue, color, runs in self.runs_by_hue(panel, cells, style):
            points = runs.groupby("place")["value"].agg(STATISTICS)
            edges = [points.index[0] - 0.5, *(points.index + 0.5)]
            if self._is_filled(style):
                axes.bar(points.index, points["mean"], GROUP, color=color, linewidth=0)
                axes.grid(visible=False, axis="x")
            else:
                line = self.line(hue, style, color)
                axes.stairs(points["mean"], edges, baseline=None, linewidth=LINE, **line)
            low, high = deviation_limits(points, METRICS[self.metric].unit)
            axes.stairs(high, edges, baseline=low, fill=True, color=color, **BAND)
        axes.margins(x=0)
        number_places(axes, "x", panel["place"].nunique())
        axes.axhline(0, linewidth=0).sticky_edges.y.append(0)

    def _draw_groups(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        xs, unit = style.ordered(self.x, cells[self.x]), METRICS[self.metric].unit
        colors = self.colors(cells, style)
        seaborn.barplot(
            panel,
            x=self.x,
            y="value",
            order=xs,
            hue=self.hue,
            hue_order=list(colors),
            palette=colors,
            saturation=1,
            errorbar=lambda values: deviation_limits(values.agg(STATISTICS), unit),
            err_kws={"color": "#333333", "linewidth": 0.8},
            capsize=0.12,
            width=GROUP,
            gap=0.06,
            dodge=self.x != self.hue,
            legend=False,
            ax=axes,
            **EDGE,
        )
        for hue, bars in zip(colors, axes.containers, strict=True):
            runs = panel[panel[self.hue] == hue]
            groups = (runs[runs[self.x] == x] for x in xs)
            for group, bar in zip((group for group in groups if len(group)), bars, strict=True):
                bar.set_hatch(style.hatch(self.hue, hue))
                _mark_unfinished_or_diverged(axes, bar, group)
        name_places(axes, [style.value(self.x, x) for x in xs])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(xs) - 0.5)

    def draw_paper(
        self, axes: Axes, matches: list[PaperMatch], cells: DataFrame, style: Style
    ) -> None:
        hues = style.ordered(self.hue, cells[self.hue]) if self.has_legend else [""]
        xs = style.ordered(self.x, cells[self.x])
        for match in matches:
            slot = hues.index(match.labels[self.hue]) if self.has_legend else 0
            left = xs.index(match.labels[self.x]) + GROUP * (slot / len(hues) - 0.5)
            axes.plot(
                [left, left + GROUP / len(hues)],
                [match.values[0].value * METRICS[self.metric].scale] * 2,
                color=PAPER_TICK,
                label=paper_name(match.values[0].source),
                linewidth=1.2,
            )

    def x_title(self, style: Style) -> str:
        if self.is_profile and self.order == "value":
            return f"{MANY[self.x]}, highest first"
        return "" if self.x == SERIES else super().x_title(style)  # its names need no title

    def handle(self, value: str, style: Style, color: str) -> Artist:
        if not self.is_profile:
            hatch = style.hatch(self.hue, value)
            return mpl_patches.Patch(facecolor=color, hatch=hatch, **EDGE)
        if self._is_filled(style):
            return mpl_patches.Patch(facecolor=color)
        return super().handle(value, style, color)

    def remarks(self, measured: DataFrame) -> list[str]:
        if self.is_profile:  # it has no crosses
            measured = measured[measured["status"] != "diverged"]
        return super().remarks(measured)

    @property
    def deviation(self) -> str:
        return "band" if self.is_profile else "whisker"

    @property
    def mark(self) -> str:
        return "profile" if self.is_profile else "bar"

    @property
    def has_legend(self) -> bool:
        return self.x != self.hue


def _mark_unfinished_or_diverged(axes: Axes, bar: Rectangle, runs: DataFrame) -> None:
    """Make a bar pale if a run of it is unfinished, and put a cross above it if one diverged."""
    statuses, color = set(runs["status"]), bar.get_facecolor()
    if "unfinished" in statuses:
        red, green, blue = (PALE + (1 - PALE) * part for part in mpl_colors.to_rgb(color))
        bar.set_facecolor((red, green, blue))
    if "diverged" in statuses:
        whisker = runs["value"].std() if len(runs) > 1 else 0
        axes.annotate(
            CROSS,
            (bar.get_x() + bar.get_width() / 2, bar.get_height() + whisker),
            (0, 1.5),
            textcoords="offset points",
            ha="center",
            color=color,
            fontsize=8,
        )


@dataclass(frozen=True, kw_only=True)
class Lines(ValuePerRun):
    """A line per hue over the values of a label, which lie at their numbers, or one after another
    if any is not a number or their names would overlap.

    A missing value is skipped: the line connects its neighbors.
    """

    name: ClassVar[str] = "lines"
    mark = "point"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": f"{CROSS}: a run diverged",
        "unfinished": "white: with unfinished runs",
    }

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    log: bool = parameter(False, help="whether the y axis is logarithmic")

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
        in_order = {value: float(index) for index, value in enumerate(values)}
        try:
            values = sorted(values, key=float)
        except ValueError:
            return in_order
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

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        marker = {"marker": style.marker(self.hue, value), "markersize": 2.5}
        return super().line(value, style, color) | style.stroke(self.hue, value) | marker
