"""Means over seeds with their standard deviations: curves over rounds, or over what a run has cost
so far; one value of each run over a label, as bars or lines; and profiles of clients or classes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from cohort.core import UserError, lazy
from cohort.core.components import parameter
from cohort.results import series
from cohort.results.figures import theme
from cohort.results.figures.kind import TEXTS, Averaging, also_parameter
from cohort.results.figures.theme import STATISTICS, Style
from cohort.results.names import BY_CLASS, BY_CLIENT, BY_ROUND, BY_STEP, FREE, METRICS
from cohort.results.paper import PaperMatch
from cohort.results.series import finite_rows
from cohort.results.statistics import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

mpl, pd, seaborn = lazy("matplotlib"), lazy("pandas"), lazy("seaborn")
optimize, patheffects = lazy("scipy.optimize"), lazy("matplotlib.patheffects")
ODD: dict[str, Any] = {"not": {"multipleOf": 2}}
CROSSES: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 5, "markeredgewidth": 1.3}
STOPPED = (0, (1, 1.2))  # the dashes of a mean of fewer runs
LEADER = 0.07  # of the x axis: from the end of a curve to its name
LINE_TO_NAME: dict[str, Any] = {"arrowstyle": "-", "linewidth": 1.0, "shrinkA": 0, "shrinkB": 0}
LINE_TO_NAME |= {"relpos": (0, 0.5)}
FEW_CURVES = 6  # which have a band each
FEW_POINTS = 12  # a curve of at most so many points shows each of them
COSTS_SHOWN = 200  # along the axis of a cost
PROFILES = {"client": BY_CLIENT, "class": BY_CLASS}
MANY = {"client": "Clients", "class": "Classes"}
ABOVE: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
GROUP = 0.8  # the share of the distance between two places that bars take
WHISKER = {"capsize": 0.12, "err_kws": {"color": "#333333", "linewidth": 0.8}}
BARS: dict[str, Any] = {"saturation": 1, "width": GROUP, "gap": 0.06, "linewidth": 0} | WHISKER
PAPER_POINT: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 4}
PAPER_POINT |= {"markerfacecolor": "none", "markeredgewidth": 0.8}


@dataclass(frozen=True, kw_only=True)
class Curves(Averaging):
    """Learning curves over rounds, or over the steps of local work in profiled runs.

    Diverged and unfinished runs are drawn up to their last round. After it the mean is one of
    fewer runs, and its line is dotted.
    """

    name: ClassVar[str] = "curves"
    mark_noun = "curve"

    metric: str = parameter(enum=[*BY_ROUND, *BY_STEP], help="what is drawn")
    also: list[str] | None = also_parameter([*BY_ROUND, *BY_STEP])
    smoothing: int = parameter(
        1, help="moving average over so many evaluated points, an odd number", minimum=1, **ODD
    )
    buckets: int = parameter(
        1,
        minimum=1,
        help="show the mean of so many rounds, fewer at a cheaper scale, at their last",
    )
    band: Literal["sd", "interval", "none"] = parameter(
        "sd", help="standard deviation over seeds, 95 % interval of the mean, or no band"
    )
    direct: bool = parameter(False, help="name curves at their ends, instead of in a legend")
    until: int | None = parameter(None, minimum=1, help="the last round shown; by default all")
    dashed: list[str] | None = parameter(None, help="the hues whose curves are dashed", **TEXTS)
    paper: str = parameter(
        "",
        help="the item of resources/paper_values/{study}_curves.csv, or of "
        "{study}.csv where there is none, to draw too",
    )

    def check(self) -> None:
        if self.smoothing > 1 and self.buckets > 1:
            raise UserError("smoothing and buckets cannot be combined; leave one of them out")
        over = METRICS[self.metric].by  # rounds, or steps of local work in profiled runs
        for metric in self.also or ():
            if METRICS[metric].by != over:
                raise UserError(f"curves over the {over} cannot show {metric}")
        if over == "step" and (self.paper or self.buckets > 1):
            raise UserError(f"paper and buckets are of rounds; leave them out for {self.metric}")

    def mentioned_values(self) -> Mapping[str, Sequence[str]]:
        return {**super().mentioned_values(), self.hue: self.dashed or ()}

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = finite_rows(metrics, self.metric)
        values = rows["value"] * METRICS[self.metric].scale
        if self.smoothing > 1:
            runs = values.groupby(rows["digest"])
            values = runs.rolling(self.smoothing, center=True, min_periods=1).mean().droplevel(0)
        rows = rows.assign(value=values, round=rows["round"].astype(int))
        if self.buckets > 1:  # a bucket that a run ended within is left out
            sizes = (self.buckets * series.shares_of(rows)).round().clip(lower=1).astype(int)
            ends = -(-rows["round"] // sizes) * sizes
            is_whole = ends <= rows.groupby("digest")["round"].transform("max")
            means = rows["value"].groupby([rows["digest"], ends]).transform("mean")
            rows = rows.assign(round=ends, value=means)[is_whole]
            rows = rows.drop_duplicates(["digest", "round"])
        if not self.until:
            return rows
        goes_on = rows.groupby("digest")["round"].transform("max") > self.until
        rows = rows.assign(status=rows["status"].mask(goes_on, "done"))  # no cross where it is cut
        return rows[rows["round"] <= self.until]

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        for hue, color, runs in self.runs_by_hue(panel, style):
            marker = {"marker": style.look(self.hue, hue, theme.MARKERS)}
            props = self.line_props(hue, style, color) | marker
            self._draw_curve(axes, runs, props, self.has_deviations(style))
        self.draw_reference(axes)
        axes.margins(x=0.03)
        theme.set_integer_ticks(axes, "x", int(panel["round"].max()) + 1)
        axes.set_xlim(left=0, auto=None)

    def has_deviations(self, style: Style) -> bool:
        return self.band != "none" and len(style.shown_values[self.hue]) <= FEW_CURVES

    @property
    def deviation(self) -> str:
        return "band: 95 % interval of the mean" if self.band == "interval" else super().deviation

    @property
    def has_legend(self) -> bool:
        return not self.direct

    def annotate(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        """Write the names of `direct` curves as near to their ends as they have room."""
        if not self.direct:
            return
        ends = []
        for hue, color, runs in self.runs_by_hue(panel, style):
            last = runs[runs["round"] == runs["round"].max()]
            ends.append((float(last["value"].mean()), int(last["round"].max()), hue, color))
        low, high = axes.get_ylim()
        apart = theme.NAME_HEIGHT * (high - low) / (theme.grid_cell(axes)[1] - theme.ENDS)
        steps = apart * np.arange(len(ends))
        heights = optimize.isotonic_regression([end[0] for end in sorted(ends)] - steps).x + steps
        heights = np.minimum(heights, high - steps[::-1])
        gap = LEADER * (axes.get_xlim()[1] - axes.get_xlim()[0])
        props: dict[str, Any] = {"va": "center", "annotation_clip": False}
        for (value, end, hue, color), height in zip(sorted(ends), heights, strict=True):
            props["arrowprops"] = LINE_TO_NAME | {"color": color}
            axes.annotate(style.phrase(self.hue, hue), (end, value), (end + gap, height), **props)

    def _draw_curve(
        self, axes: Axes, runs: DataFrame, props: dict[str, Any], has_band: bool
    ) -> None:
        """Draw the mean curve of one hue: in its own dashes as far as all runs go, then dotted."""
        counts = runs.groupby("round")["digest"].nunique()
        complete = counts.index[counts == runs["digest"].nunique()]
        end = complete.max() if len(complete) else counts.index.min()
        marker = props["marker"] if len(counts) <= FEW_POINTS else None
        props |= {"markersize": 2.5, "markeredgecolor": props["color"], "marker": marker}
        parts = [(runs[runs["round"] <= end], props["linestyle"])]
        if counts.index.max() > end:
            parts.append((runs[runs["round"] >= end], STOPPED))
        for part, linestyle in parts:
            statistics = part.groupby("round")["value"].agg(STATISTICS)
            if self.band == "interval":
                values = part.groupby("round")["value"]
                halves = values.agg(lambda group: Sample.of(group).half_width())
                statistics["std"] = halves.replace(math.inf, math.nan)  # the band's half width
            part_props, unit = props | {"linestyle": linestyle}, METRICS[self.metric].unit
            theme.draw_means(axes, statistics, unit, part_props, has_band=has_band)
        stops = runs[runs["status"] == "diverged"].groupby("digest")["round"].max()
        means = runs.groupby("round")["value"].mean()
        axes.plot(stops, means.loc[stops], color=props["color"], **CROSSES)

    def draw_paper(self, axes: Axes, matches: Sequence[PaperMatch], style: Style) -> None:
        colors = self.colors(style)
        for match in matches:
            points = [(value.round or 0, value.value) for value in match.values]
            points = [point for point in points if not self.until or point[0] <= self.until]
            if not points:
                continue
            props = PAPER_POINT if len(points) <= FEW_POINTS else theme.PAPER_LINE
            rounds, values = zip(*points, strict=True)
            color = colors[match.labels[self.hue]] if len(colors) > 1 else theme.PAPER_GRAY
            axes.plot(rounds, np.multiply(values, METRICS[self.metric].scale), color=color, **props)
            axes.plot([], [], color=theme.PAPER_GRAY, label=theme.paper_name(match), **props)
        axes.set_xlim(left=0, auto=None)  # again, since drawing more rescales the axis

    def x_title(self, style: Style) -> str:
        return "Local step" if self.metric in BY_STEP else style.round

    def line_props(self, value: str, style: Style, color: str) -> dict[str, Any]:
        props = super().line_props(value, style, color) | style.stroke(self.hue, value)
        if self.dashed or (self.paper and self.hue not in theme.NOMINAL):  # its curves are dashed
            props["linestyle"] = theme.DASHES[value in (self.dashed or ())]
        return props

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        ends = measured.groupby([*self.facets(), "digest"])["round"].max()
        is_dotted = bool((ends.groupby(list(self.facets())).nunique() > 1).any())
        notes = [f"moving average of {self.smoothing} evaluations"] * (self.smoothing > 1)
        notes += [f"means of {self.buckets} rounds"] * (self.buckets > 1)
        return [*super().remarks(measured, style), *notes, *["dotted: fewer runs"] * is_dotted]


@dataclass(frozen=True, kw_only=True)
class CostCurves(Averaging):
    """Curves of a metric over a cost: the mean over seeds of the value last measured before a cost
    was spent, with their standard deviation as a band. A curve ends with its dearest finished run;
    runs that ended before, diverged and unfinished ones keep their last value."""

    name: ClassVar[str] = "cost_curves"
    mark_noun = "curve"
    status_notes: ClassVar[Mapping[str, str]] = {
        "done": "runs that have ended keep their last value",
        "unfinished": "unfinished runs included",
    }

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    cost: Literal["simulated_seconds", "bytes_up", "bytes_down", "client_steps", "seconds"] = (
        parameter("simulated_seconds", help="along the x axis, summed over rounds")
    )
    smoothing: int = parameter(
        1, minimum=1, help="mean over so many evaluations, the latest and those before it"
    )

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.cost)

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The values of the metric, with the cost until then in the column `spent`."""
        costs = finite_rows(metrics, self.cost).sort_values(["digest", "round"])
        total = costs.groupby("digest")["value"].cumsum() * METRICS[self.cost].scale
        spent = costs[["digest", "round"]].assign(spent=total)
        rows = finite_rows(metrics, self.metric).sort_values(["digest", "round"])
        recent = rows.groupby("digest")["value"].rolling(self.smoothing, min_periods=1).mean()
        rows = rows.assign(value=recent.droplevel(0) * METRICS[self.metric].scale)
        return rows.merge(spent, on=["digest", "round"], validate="one_to_one")

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        for hue, color, runs in self.runs_by_hue(panel, style):
            props, unit = self.line_props(hue, style, color), METRICS[self.metric].unit
            theme.draw_means(axes, mean_over_cost(runs), unit, props)
        self.draw_reference(axes)
        axes.set_xlim(left=0, auto=None)

    def x_title(self, style: Style) -> str:
        return METRICS[self.cost].label.replace(" per round", "")

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        notes = [f"means of the last {self.smoothing} evaluations"] * (self.smoothing > 1)
        return [*super().remarks(measured, style), *notes]


def mean_over_cost(runs: DataFrame) -> DataFrame:
    """The statistics over runs at costs from the first at which all runs have a value to the last
    that a finished one reaches, or any if none is finished; the costs are the index."""
    curves: list[tuple[np.ndarray, np.ndarray]] = [
        (run["spent"].to_numpy(), run["value"].to_numpy())
        for _, run in runs.sort_values("round").groupby("digest")
    ]
    first = max(spent[0] for spent, _ in curves)
    finished = runs.loc[runs["status"] == "done", "spent"]
    last = max(first, (finished if len(finished) else runs["spent"]).max())
    costs = np.linspace(first, last, COSTS_SHOWN)
    values = [value[np.searchsorted(spent, costs, "right") - 1] for spent, value in curves]
    return pd.DataFrame(values).agg(STATISTICS).T.fillna({"std": 0.0}).set_axis(costs)


@dataclass(frozen=True, kw_only=True)
class ValuePerRun(Averaging):
    """Base of the kinds that show one value of each run over a label."""

    status_notes: ClassVar[Mapping[str, str]] = {
        "unfinished": "unfinished runs included",
        "diverged": f"{theme.CROSS}: a run diverged, which counts with the worst value",
    }

    at: int | str = parameter("last", help=series.AT_HELP, **series.AT_SCHEMA)
    x: str = parameter(help="the label along the x axis")
    paper: str = parameter("", help="the item of resources/paper_values/{study}.csv to draw too")

    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.facets(), self.x]))

    def has_enough(self, cells: Iterable[Mapping[str, Any]]) -> bool:
        """Whether a line, or a panel of bars, has two places along x, or all that are planned."""
        planned, begun = defaultdict[Any, set[str]](set), defaultdict[Any, set[str]](set)
        others = [label for label in self.facets() if label != self.x]
        for cell in cells:
            x, *key = (str(cell["labels"].get(label)) for label in (self.x, *others))
            planned[*key].add(x)
            if cell["status"] != "missing":
                begun[*key].add(x)
        return any(len(values) >= min(2, len(planned[key])) for key, values in begun.items())

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = series.value_per_cell(metrics, self.metric, self.at).dropna(subset="value")
        return rows.assign(value=self.scaled(rows["value"]))

    def scaled(self, value: Any) -> Any:
        """A value, or many, in the unit of the y axis."""
        return value * METRICS[self.metric].scale

    def x_title(self, style: Style) -> str:
        return "" if self.x in FREE else style.title(self.x)  # invented names need no title

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        notes = [series.at_in_words(self.at)] * (self.at != "last")
        return [*notes, *super().remarks(measured, style)]

    @property
    def has_legend(self) -> bool:
        return self.hue not in (self.x, *self.panels())


@dataclass(frozen=True, kw_only=True)
class Bars(ValuePerRun):
    """Grouped bars over the values of a label, or a profile of clients or classes (`x: client`,
    `x: class`), highest value first.

    Profiles are sorted within each run before runs are averaged: the client called 7 differs from
    seed to seed, how uneven the clients are does not. So `order: number` shows the clients of the
    first seed only. Profiles are outlines, as bars of many clients would be thinner than a line.
    """

    name: ClassVar[str] = "bars"

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT, *BY_CLASS], help="what is drawn")
    also: list[str] | None = also_parameter([*BY_ROUND, *BY_CLIENT, *BY_CLASS])
    x: str = parameter(help="the label along the x axis, or client, or class")
    order: Literal["value", "number"] = parameter(
        "value", help="the order of clients or classes: the highest value first, or by number"
    )

    def check(self) -> None:
        where, metrics = f"bars over x: {self.x}", PROFILES.get(self.x, BY_ROUND)
        others = [*BY_CLIENT, *BY_CLASS] if self.is_profile else BY_ROUND
        pairs = [(self.metric, metrics), *((metric, others) for metric in self.also or ())]
        for metric, allowed in pairs:
            if metric not in allowed:
                raise UserError(f"{where} cannot show {metric}; choose among {', '.join(allowed)}")
        if self.paper and self.is_profile:
            raise UserError(f"{where} cannot show values of a whole run; leave paper out")
        if self.order != "value" and not self.is_profile:
            raise UserError(f"{where} are in the study's order; leave order out")

    @property
    def is_profile(self) -> bool:
        """Whether bars stand for clients or classes."""
        return self.x in PROFILES

    def with_metric(self, metric: str) -> Self:
        x = METRICS[metric].by if self.is_profile else self.x
        return replace(super().with_metric(metric), x=x)

    def labels(self) -> tuple[str, ...]:
        return self.facets() if self.is_profile else super().labels()

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The rows to draw; of a profile with the column `rank`: the rank of a client or class
        within its run, or its number. Other seeds than the first deal other clients."""
        if not self.is_profile:
            return super().measure(metrics)
        rows = finite_rows(metrics, self.metric)
        number = "client" if self.x == "client" else "label"
        rows = rows.assign(value=rows["value"] * METRICS[self.metric].scale)
        if self.order == "value":
            rows = rows.sort_values(["digest", "value", number], ascending=[True, False, True])
            return rows.assign(rank=rows.groupby("digest").cumcount() + 1)
        if self.x == "client":
            seeds, groups = rows["seed"].astype(int), [rows[label] for label in self.facets()]
            rows = rows[seeds == seeds.groupby(groups).transform("min")]
        return rows.assign(rank=rows[number].astype(int)).sort_values(["digest", "rank"])

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        draw = self._draw_profiles if self.is_profile else self._draw_groups
        draw(axes, panel, style)
        self.draw_reference(axes)

    def _draw_profiles(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        """Draw means over runs as an outline, with a band of one standard deviation."""
        for hue, color, runs in self.runs_by_hue(panel, style):
            points = runs.groupby("rank")["value"].agg(STATISTICS)
            points = points.reindex(range(points.index[0], points.index[-1] + 1))  # gaps stay open
            edges = [points.index[0] - 0.5, *(points.index + 0.5)]
            props = self.line_props(hue, style, color)
            axes.stairs(points["mean"], edges, baseline=None, linewidth=theme.LINE, **props)
            low, high = theme.deviation_limits(points, METRICS[self.metric].unit)
            axes.stairs(high, edges, baseline=low, fill=True, color=color, **theme.BAND)
        axes.margins(x=0)
        theme.set_integer_ticks(axes, "x", panel["rank"].nunique())
        axes.axhline(0, linewidth=0).sticky_edges.y.append(0)

    def _draw_groups(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        xs, colors, unit = style.shown_values[self.x], self.colors(style), METRICS[self.metric].unit
        order: dict[str, Any] = {"x": self.x, "order": xs, "hue": self.hue, "hue_order": [*colors]}
        seaborn.barplot(
            panel,
            y="value",
            palette=colors,
            errorbar=lambda values: theme.deviation_limits(values.agg(STATISTICS), unit),
            dodge=self.has_legend,
            legend=False,
            ax=axes,
            **order,
            **BARS,
        )
        for whisker in axes.lines:  # visible over bars of any color
            whisker.set_path_effects([patheffects.withStroke(linewidth=1.8, foreground="white")])
        for hue, bars in zip(colors, axes.containers, strict=True):
            mpl.artist.setp(bars, **self._fill(hue, style))
            runs = panel[panel[self.hue] == hue]
            groups = (runs[runs[self.x] == x] for x in xs if (runs[self.x] == x).any())
            for group, bar in zip(groups, bars, strict=True):
                if "diverged" in set(group["status"]):
                    top = group["value"].mean() + (group["value"].std() if len(group) > 1 else 0)
                    middle = bar.get_x() + bar.get_width() / 2
                    axes.annotate(theme.CROSS, (middle, top), (0, 1.5), color=colors[hue], **ABOVE)
        theme.set_category_ticks(axes, [style.value(self.x, x) for x in xs])
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(xs) - 0.5)

    def draw_paper(self, axes: Axes, matches: Sequence[PaperMatch], style: Style) -> None:
        hues = style.shown_values[self.hue] if self.has_legend else [""]
        for match in matches:
            slot = hues.index(match.labels[self.hue]) if self.has_legend else 0
            position = style.shown_values[self.x].index(match.labels[self.x])
            middle = position + GROUP * ((slot + 0.5) / len(hues) - 0.5)
            props = PAPER_POINT | {"color": "#000000", "label": theme.paper_name(match)}
            props |= {"markerfacecolor": "#ffffff", "zorder": 4}  # on bars of any color
            axes.plot(middle, self.scaled(match.values[0].value), **props)

    def x_title(self, style: Style) -> str:
        if self.is_profile and self.order == "value":
            return f"{MANY[self.x]}, highest first"
        return super().x_title(style)

    def handle(self, value: str, style: Style, color: str) -> Any:
        if self.is_profile:
            return super().handle(value, style, color)
        return mpl.patches.Patch(facecolor=color, linewidth=0, **self._fill(value, style))

    def _fill(self, value: str, style: Style) -> dict[str, str]:
        """The hatching of a hue's bars, without which they differ in color alone."""
        hatch = style.look(self.hue, value, theme.HATCHES) * self.has_legend
        return {"hatch": hatch, "edgecolor": "#ffffff"}

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        if self.is_profile:  # it has no crosses
            measured = measured.replace({"status": {"diverged": "done"}})
        return super().remarks(measured, style)

    @property
    def deviation(self) -> str:
        return super().deviation if self.is_profile else "whisker: ± 1 SD"

    @property
    def mark_noun(self) -> str:
        return "profile" if self.is_profile else "bar"


@dataclass(frozen=True, kw_only=True)
class Lines(ValuePerRun):
    """A line per hue over the values of a label, which lie at their numbers, at their logarithms
    if these span a factor of ten, or one after another if any is not a number or names overlap.
    Where a value is missing, the line connects its neighbors."""

    name: ClassVar[str] = "lines"
    mark_noun = "point"

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    log: bool = parameter(False, help="whether the y axis is logarithmic")
    errors: bool = parameter(False, help="show what accuracies lack of 100 %")

    def check(self) -> None:
        if self.errors and {METRICS[part.metric].unit for part in self.by_metric()} != {"%"}:
            raise UserError("errors are what an accuracy lacks of 100 %; leave errors out")

    def scaled(self, value: Any) -> Any:
        return 100 - super().scaled(value) if self.errors else super().scaled(value)

    def y_title(self) -> str:
        title = super().y_title()
        return title.replace("accuracy", "error") if self.errors else title

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        positions = self._positions(axes, style)
        for hue, color, runs in self.runs_by_hue(panel, style):
            props = self.line_props(hue, style, color) | {"markeredgecolor": color}
            values = runs["value"].groupby(runs[self.x].map(positions))
            theme.draw_means(axes, values.agg(STATISTICS), METRICS[self.metric].unit, props)
            marked = runs.loc[runs["status"] == "diverged", self.x].map(positions).unique()
            axes.plot(marked, values.mean().loc[marked], color=color, **CROSSES)
        self.draw_reference(axes)
        if self.log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
        names = [style.value(self.x, x) for x in positions]
        if list(positions.values()) == list(range(len(positions))):
            theme.set_category_ticks(axes, names)
        else:
            axes.set_xticks(list(positions.values()), names)

    def _positions(self, axes: Axes, style: Style) -> dict[str, float]:
        """Where each value of `x` is: at its number, if all have one and their names have room."""
        values = style.shown_values[self.x]
        in_order = {value: float(index) for index, value in enumerate(values)}
        try:
            numbers = {value: float(value) for value in sorted(values, key=float)}
        except ValueError:
            return in_order
        if max(numbers.values()) >= 10 * min(numbers.values()) > 0:
            numbers = {value: math.log10(number) for value, number in numbers.items()}
        apart = np.diff([*numbers.values()])
        names = np.array([len(style.value(self.x, value)) for value in numbers])
        room = (theme.grid_cell(axes)[0] - theme.SIDES) * apart / max(apart.sum(), 1e-9)
        has_room = (room >= ((names[:-1] + names[1:]) / 2 + 1) * theme.LETTER).all()
        return numbers if has_room else in_order

    def draw_paper(self, axes: Axes, matches: Sequence[PaperMatch], style: Style) -> None:
        colors, positions = self.colors(style), self._positions(axes, style)
        for match in matches:
            x, color = positions[match.labels[self.x]], colors[match.labels[self.hue]]
            axes.plot(x, self.scaled(match.values[0].value), color=color, **PAPER_POINT)
            axes.plot([], [], color=theme.PAPER_GRAY, label=theme.paper_name(match), **PAPER_POINT)

    def line_props(self, value: str, style: Style, color: str) -> dict[str, Any]:
        marker = {"marker": style.look(self.hue, value, theme.MARKERS), "markersize": 2.5}
        return super().line_props(value, style, color) | style.stroke(self.hue, value) | marker
