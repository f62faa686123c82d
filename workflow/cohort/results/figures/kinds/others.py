"""Figures of other kinds: how far strategies are ahead of a baseline across settings (a setting is
all of a run but its strategy or other hue, its seed and its panel); one metric of clients against
another; and how many samples of each class clients have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core import UserError, counted, lazy
from cohort.core.components import parameter
from cohort.results import comparison, statistics
from cohort.results.figures import kind, theme
from cohort.results.figures.theme import Style
from cohort.results.names import BY_CLIENT, BY_ROUND, METRICS
from cohort.results.series import AT_HELP, AT_SCHEMA, finite_rows
from cohort.results.statistics import Sample, means_by_seed, shared_runs
from cohort.settings import SHARD_KEYS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

seaborn = lazy("seaborn")
INTERVALS = "paired means, 95\N{NO-BREAK SPACE}% intervals over seeds, lighter where they contain 0"
BAR: dict[str, Any] = {"linewidth": 6, "alpha": 0.4, "solid_capstyle": "butt"}
POINT: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 1.5}
ROW, FRAME = 0.17, 0.87  # inches: the height of a strategy, and of all that is not one

CLIENT_POINT: dict[str, Any] = {"s": 9, "alpha": 0.65, "linewidth": 0}
KEY: dict[str, Any] = {"handlelength": 0.8, "handletextpad": 0.4, "borderpad": 0.2, "fontsize": 7}
MIN_CLIENTS = 3  # for which a rank correlation is shown
RHO = "\N{GREEK SMALL LETTER RHO}"
POINTS = 72.0  # in an inch
MIN_DIAMETER, MAX_DIAMETER = 1.2, 14.0  # points: of the bubbles of few and of most samples


@dataclass(frozen=True, kw_only=True)
class Interval(kind.Kind):
    """How far each strategy is ahead of the first one, the baseline, on average over settings.
    Differences are paired by seed; their intervals say what other seeds would change."""

    name: ClassVar[str] = "interval"
    shared_y: ClassVar[bool] = False  # strategies, which differ between panels
    has_legend = False
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": "a diverged run counts with the worst value"
    }

    metric: str = parameter(enum=BY_ROUND, help="what is compared")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)

    def check(self) -> None:
        statistics.check_better(self.metric)
        if self.hue == "seed":
            raise UserError("an interval is over seeds, which cannot be its hue")
        if self.limits:
            raise UserError(f"a figure of kind {self.name} sets its own limits; leave out limits")

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        statistics.check_settings(self.hue, self.mentioned_values(), axes, cells)

    def ignores(self, label: str) -> bool:
        return True

    def measures(self) -> list[comparison.Measure]:
        return [replace(measure, over_settings=True) for measure in super().measures()]

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The finished runs, with the columns value and setting."""
        runs = statistics.runs_by_setting(metrics, self.metric, self.at, self.facets())
        return runs.assign(value=runs["value"] * METRICS[self.metric].scale)

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        return min(theme.MAX_WIDTH, width), FRAME + ROW * hues

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        means, baseline = means_by_seed(panel, self.hue), style.shown_values[self.hue][0]
        if means.empty or baseline not in means:
            axes.set_yticks([])
            theme.show_message(axes, "no seed that all strategies have in all settings")
            return
        sign = 1 if METRICS[self.metric].better == "high" else -1
        differences = means.sub(means[baseline], axis="index")
        samples = {str(value): Sample.of(differences[value].to_numpy()) for value in differences}
        ranked = sorted(samples, key=lambda value: -sign * samples[value].mean)
        axes.axvline(0, color=theme.PAPER_GRAY, **theme.PAPER_LINE)
        for row, value in enumerate(ranked):
            mean, (low, high) = samples[value].mean, samples[value].interval()
            color = theme.PAPER_GRAY if low <= 0 <= high else "#000000"
            if samples[value].n > 1:
                axes.plot([low, high], [row, row], color=color, **BAR)
            axes.plot([mean], [row], color=color, **POINT)
        axes.set_yticks(range(len(ranked)), [style.value(self.hue, value) for value in ranked])
        axes.set_ylim(len(ranked) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")

    def x_title(self, style: Style) -> str:
        baseline = style.value(self.hue, style.shown_values[self.hue][0])
        label = METRICS[self.metric].label.replace("%", "points")
        return fill(f"{label}, minus {baseline}", 16)  # panels are narrow

    def y_title(self) -> str:
        return ""

    def runs_note(self, measured: DataFrame) -> str:
        return counted(measured["digest"].nunique(), "run")

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        panels = [panel for _, panel in measured.groupby([*self.panels()] or (lambda row: 0))]
        seeds = theme.span(len(means_by_seed(panel, self.hue)) for panel in panels)
        shared = [shared_runs(panel, self.hue).index.unique("setting") for panel in panels]
        settings = theme.span(map(len, shared))
        basis = f"{seeds} seeds shared by all (settings: {settings})"
        return [basis, *super().remarks(measured, style), INTERVALS]


@dataclass(frozen=True, kw_only=True)
class Scatter(kind.Kind):
    """A point for each client of each run, of all seeds together, and Spearman's rank correlation
    per color and panel."""

    name: ClassVar[str] = "scatter"
    mark_noun = "color"

    metric: str = parameter(enum=BY_CLIENT, help="the metric on the y axis")
    x: str = parameter(enum=BY_CLIENT, help="the metric on the x axis")

    def check(self) -> None:
        if self.also:
            raise UserError("a scatter of clients shows two metrics only; leave out also")

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.x)

    def measure(self, metrics: DataFrame) -> DataFrame:
        x = finite_rows(metrics, self.x)[["digest", "client", "value"]]
        x = x.assign(x=x.pop("value") * METRICS[self.x].scale)
        rows = finite_rows(metrics, self.metric).merge(x, on=["digest", "client"])
        return rows.assign(value=rows["value"] * METRICS[self.metric].scale)

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        colors = self.colors(style)
        hues: dict[str, Any] = {"hue": self.hue, "hue_order": list(colors), "palette": colors}
        seaborn.scatterplot(panel, x="x", y="value", legend=False, ax=axes, **hues, **CLIENT_POINT)
        correlations = {}
        for hue, color, points in self.runs_by_hue(panel, style):
            x, y = points["x"], points["value"]
            is_defined = len(x) >= MIN_CLIENTS and x.nunique() > 1 and y.nunique() > 1
            rho = f"{x.corr(y, method='spearman'):.2f}" if is_defined else "undefined"
            handle = self.handle(hue, style, color)
            correlations[handle] = f"{RHO} = {rho}".replace("-", "\N{MINUS SIGN}")
        axes.legend(list(correlations), list(correlations.values()), loc="best", **KEY)

    def x_title(self, style: Style) -> str:
        return METRICS[self.x].label

    def line_props(self, value: str, style: Style, color: str) -> dict[str, Any]:
        return {"color": color, "linestyle": "none", "marker": "o", "markersize": 3.5}

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        return [f"{RHO}: Spearman's rank correlation of the points"]


@dataclass(frozen=True, kw_only=True)
class Shards(kind.Kind):
    """A bubble chart of shards: clients along the x axis, classes up the y axis, samples as the
    area of a bubble, on one scale for all panels.

    Of several seeds the first one with a record is drawn; cells with the same shards, such as those
    of other strategies, count as one. The panels of a row share their y axis, so use
    `rows: dataset` for data sets with different numbers of classes.
    """

    name: ClassVar[str] = "shards"
    mark_noun = "panel"
    has_legend = False
    height: ClassVar[tuple[float, float]] = (0.8, 2.7)

    metric: str = parameter("label_count", enum=["label_count"], help="what is drawn")

    def check(self) -> None:
        if self.also or self.hue != "strategy":
            hint = "leave out also and hue"
            raise UserError(f"shards have neither further metrics nor colors; {hint}")

    def facets(self) -> tuple[str, ...]:
        return self.panels()

    def labels(self) -> tuple[str, ...]:
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
            peak=rows["value"].max(),
            client_count=rows["client"].max() + 1,
            class_count=rows["label"].max() + 1,
        )

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        peak, clients, classes = panel.iloc[0][["peak", "client_count", "class_count"]]
        width, height = theme.grid_cell(axes)
        room = POINTS * min((width - theme.SIDES) / clients, (height - theme.ENDS) / classes)
        largest = min(room, MAX_DIAMETER) ** 2
        props: dict[str, Any] = {"color": theme.COLORS[0], "linewidth": 0}
        bubbles = panel[panel["value"] > 0]
        areas = np.maximum(largest * bubbles["value"] / peak, MIN_DIAMETER**2)
        axes.scatter(bubbles["client"], bubbles["label"], areas, **props)
        parts = [peak / part for part in (16, 4, 1) if peak >= part]
        for value in sorted({int(float(f"{part:.0e}")) for part in parts}):  # round numbers
            axes.scatter([], [], largest * value / peak, label=counted(value, "sample"), **props)
        top = max(axes.get_ylim()[1], panel["label"].max() + 0.6)
        axes.set(xlim=(-0.6, clients - 0.4), ylim=(-0.6, top))
        theme.set_integer_ticks(axes, "x", clients)
        theme.set_integer_ticks(axes, "y", classes)

    def x_title(self, style: Style) -> str:
        return "Client"

    def y_title(self) -> str:
        return "Class"

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        return ["each panel shows its first seed"]
