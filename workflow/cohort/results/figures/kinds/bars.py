"""Bars: the mean over seeds with its standard deviation, by label, or by client or class."""

from __future__ import annotations

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
    LINE,
    STATISTICS,
    Style,
    deviation_bar,
    deviation_limits,
    name_places,
    number_places,
    pale,
    paper_name,
)
from cohort.results.names import BY_CLASS, BY_CLIENT, BY_ROUND, METRICS, SERIES
from cohort.results.paper_match import PaperMatch
from cohort.results.series import finite_rows, value_per_cell

if TYPE_CHECKING:
    import matplotlib.patches as mpl_patches
    import seaborn
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.patches import Rectangle
    from pandas import DataFrame
else:
    seaborn, mpl_patches = lazy("seaborn"), lazy("matplotlib.patches")

PROFILES = {"client": BY_CLIENT, "class": BY_CLASS}
MANY = {"client": "Clients", "class": "Classes"}
COLUMN = {"client": "client", "class": "label"}  # of the metrics
PAPER_TICK = "#000000"  # visible over bars of any color
GROUP = 0.8  # the share of the distance between two places that bars take
EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0}  # the color is that of hatches


@dataclass(frozen=True, kw_only=True)
class Bars(Averaging):
    """Grouped bars over the values of a label, or a profile of clients or classes (`x: client`,
    `x: class`), highest value first.

    Profiles are sorted within each run before runs are averaged: the client called 7 differs from
    seed to seed, how uneven the clients are does not. So `order: number` shows the clients of the
    first seed only; classes are the same in every run. Profiles of several hues are outlines, as
    bars of many clients would be thinner than a line.
    """

    name: ClassVar[str] = "bars"
    picture: ClassVar[str] = "Bars"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": f"{CROSS}: a run diverged",
        "unfinished": "pale: with unfinished runs",
    }

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT, *BY_CLASS], help="what is drawn")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
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
    paper: str = parameter(
        "",
        help="the item of the paper whose values are drawn over the bars, as "
        "resources/paper_values/{study}.csv calls it",
    )

    def check(self) -> None:
        allowed = PROFILES.get(self.x, BY_ROUND)
        where = f"bars over x: {self.x}"
        if self.metric not in allowed:
            raise UserError(
                f"{where} cannot show {self.metric}; choose one of {', '.join(allowed)}"
            )
        allowed = [*BY_CLIENT, *BY_CLASS] if self._is_profile() else BY_ROUND
        for metric in self.also or ():
            if metric not in allowed:
                raise UserError(
                    f"{where} cannot show {metric} too; choose among {', '.join(allowed)}"
                )
        if self.paper and self._is_profile():
            raise UserError(
                f"{where} cannot show a paper's values, which are of a whole run; leave paper out"
            )
        if self.order != "value" and not self._is_profile():
            raise UserError(f"{where} are in the study's order; leave out order: {self.order}")

    def of_metric(self, metric: str) -> Self:
        x = METRICS[metric].by if self._is_profile() else self.x
        return replace(super().of_metric(metric), x=x)

    def shown(self) -> tuple[str, ...]:
        labels = self.facets()
        return labels if self._is_profile() else tuple(dict.fromkeys([*labels, self.x]))

    def measure(self, metrics: DataFrame) -> DataFrame:
        if self._is_profile():
            rows = self._with_places(finite_rows(metrics, self.metric))
        else:
            rows = value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def _with_places(self, rows: DataFrame) -> DataFrame:
        """Add the column `place`: the rank of a client or class within its run, or its number.

        Clients by number are those of the first seed only, since other seeds deal other shards.
        """
        number = COLUMN[self.x]
        if self.order == "value":
            rows = rows.sort_values(["digest", "value", number], ascending=[True, False, True])
            return rows.assign(place=rows.groupby("digest").cumcount() + 1)
        if self.x == "client":
            seeds, groups = rows["seed"].astype(int), [rows[label] for label in self.facets()]
            rows = rows[seeds == seeds.groupby(groups).transform("min")]
        return rows.assign(place=rows[number].astype(int)).sort_values(["digest", "place"])

    def _is_profile(self) -> bool:
        return self.x in PROFILES

    def _is_filled(self, style: Style) -> bool:
        """Whether a profile is drawn as filled bars, for which it has room with a single hue."""
        return len(style.orders.get(self.hue, [])) == 1

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        if self._is_profile():
            self._draw_profiles(axes, panel, cells, style)
        else:
            self._draw_groups(axes, panel, cells, style)
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
        xs = style.ordered(self.x, cells[self.x])
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
            errorbar=deviation_bar(METRICS[self.metric].unit),
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
            drawn = (group for group in groups if len(group))
            for group, bar in zip(drawn, bars, strict=True):
                bar.set_hatch(style.hatch(self.hue, hue))
                _mark_unfinished_or_diverged(axes, bar, group)
        name_places(axes, [style.value(self.x, x) for x in xs])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(xs) - 0.5)

    def draw_paper(
        self, axes: Axes, matches: list[PaperMatch], cells: DataFrame, style: Style
    ) -> None:
        hues = style.ordered(self.hue, cells[self.hue])
        xs = style.ordered(self.x, cells[self.x])
        slots = 1 if self.x == self.hue else len(hues)
        for match in matches:
            value = match.values[0]
            slot = 0 if slots == 1 else hues.index(match.labels[self.hue])
            left = xs.index(match.labels[self.x]) + GROUP * (slot / slots - 0.5)
            axes.plot(
                [left, left + GROUP / slots],
                [value.value * METRICS[self.metric].scale] * 2,
                color=PAPER_TICK,
                label=paper_name(value.source),
                linewidth=1.2,
            )

    def x_title(self, style: Style) -> str:
        if self.x == SERIES:
            return ""  # the names need no title
        if not self._is_profile():
            return style.title(self.x)
        return style.title(self.x) if self.order == "number" else f"{MANY[self.x]}, highest first"

    def handle(self, value: str, style: Style, color: str) -> Artist:
        if not self._is_profile():
            hatch = style.hatch(self.hue, value)
            return mpl_patches.Patch(facecolor=color, hatch=hatch, **EDGE)
        if self._is_filled(style):
            return mpl_patches.Patch(facecolor=color)
        return super().handle(value, style, color)

    def remarks(self, measured: DataFrame) -> list[str]:
        if self._is_profile():  # it has no crosses
            measured = measured[measured["status"] != "diverged"]
        return super().remarks(measured)

    @property
    def deviation(self) -> str:
        return "band" if self._is_profile() else "whisker"

    @property
    def mark(self) -> str:
        return "profile" if self._is_profile() else "bar"

    @property
    def has_legend(self) -> bool:
        return self.x != self.hue


def _mark_unfinished_or_diverged(axes: Axes, bar: Rectangle, runs: DataFrame) -> None:
    """Make a bar pale if a run of it is unfinished, and put a cross above it if one diverged."""
    statuses, color = set(runs["status"]), bar.get_facecolor()
    if "unfinished" in statuses:
        bar.set_facecolor(pale(color))
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
