"""Curves over rounds, or over what a run has cost so far: the mean over seeds as a line, their
standard deviation as a band."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.figures import theme
from cohort.results.figures.kind import TEXTS, Averaging, further
from cohort.results.figures.theme import STATISTICS, Style
from cohort.results.names import BY_ROUND, BY_STEP, METRICS
from cohort.results.paper import PaperMatch
from cohort.results.series import finite_rows, shares_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

pd = lazy("pandas")
ODD: dict[str, Any] = {"not": {"multipleOf": 2}}
CROSSES: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 5, "markeredgewidth": 1.3}
PAPER_POINTS: dict[str, Any] = {"marker": "D", "markersize": 3.5, "fillstyle": "none"}
STOPPED = (0, (1, 1.2))  # the dashes of a mean of fewer runs
FEW_CURVES = 6  # which have a band each
FEW_POINTS = 12  # a curve of at most so many points shows each of them
MOST_POINTS = 250  # along the x axis, about as many as a panel has pixels
COSTS_SHOWN = 200  # along the axis of a cost


@dataclass(frozen=True, kw_only=True)
class Curves(Averaging):
    """Learning curves over rounds.

    Diverged and unfinished runs are drawn up to their last round. After it the mean is one of
    fewer runs, and its line is dotted.
    """

    name: ClassVar[str] = "curves"
    mark = "curve"
    status_notes: ClassVar[Mapping[str, str]] = {
        "unfinished": "unfinished runs included",
        "diverged": f"{theme.CROSS}: a run diverged",
    }

    metric: str = parameter(enum=[*BY_ROUND, *BY_STEP], help="what is drawn")
    also: list[str] | None = further([*BY_ROUND, *BY_STEP])
    x: Literal["round", "step"] = parameter(
        "round", help="rounds, or the steps of a client's local work in profiled runs"
    )
    smoothing: int = parameter(
        1, help="moving average over so many evaluated points, an odd number", minimum=1, **ODD
    )
    buckets: int = parameter(
        1,
        minimum=1,
        help="show the mean of so many rounds, fewer at a cheaper scale, at their last",
    )
    band: Literal["sd", "none"] = parameter("sd", help="standard deviation over seeds, or no band")
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
        for metric in (self.metric, *(self.also or ())):
            if METRICS[metric].by != self.x:
                allowed = ", ".join(BY_STEP if self.x == "step" else BY_ROUND)
                raise UserError(
                    f"curves over x: {self.x} cannot show {metric}; choose among {allowed}"
                )
        if self.x == "step" and (self.paper or self.buckets > 1):
            raise UserError("paper and buckets are of rounds; leave them out for x: step")

    def named(self) -> Mapping[str, Sequence[str]]:
        return {self.hue: self.dashed or ()}

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = finite_rows(metrics, self.metric)
        values = rows["value"] * METRICS[self.metric].scale
        if self.smoothing > 1:
            runs = values.groupby(rows["digest"])
            windows = runs.rolling(self.smoothing, center=True, min_periods=1)
            values = windows.mean().droplevel(0)
        rows = rows.assign(value=values, round=rows["round"].astype(int))
        if self.buckets > 1:
            rows = bucket_means(rows, self.buckets)
        return thin_rounds(rows[rows["round"] <= self.until] if self.until else rows)

    def draw(self, axes: Axes, panel: DataFrame, style: Style) -> None:
        for hue, color, runs in self.runs_by_hue(panel, style):
            self._draw_curve(axes, runs, self.line(hue, style, color), self.has_deviations(style))
        self.draw_reference(axes)
        axes.margins(x=0.02)
        theme.number_places(axes, "x", int(panel["round"].max()) + 1)
        axes.set_xlim(left=0, auto=None)

    def has_deviations(self, style: Style) -> bool:
        return self.band == "sd" and len(style.shown[self.hue]) <= FEW_CURVES

    def _draw_curve(
        self, axes: Axes, runs: DataFrame, line: dict[str, Any], has_band: bool
    ) -> None:
        """Draw the mean curve of one hue: in its own dashes as far as all runs go, then dotted."""
        counts = runs.groupby("round")["digest"].nunique()
        complete = counts.index[counts == runs["digest"].nunique()]
        end = complete.max() if len(complete) else counts.index.min()
        marker = "o" if len(counts) <= FEW_POINTS else None
        line = line | {"markersize": 2.5, "markeredgecolor": line["color"], "marker": marker}
        parts = [(runs[runs["round"] <= end], line["linestyle"])]
        if counts.index.max() > end:
            parts.append((runs[runs["round"] >= end], STOPPED))
        for part, linestyle in parts:
            statistics = part.groupby("round")["value"].agg(STATISTICS)
            look, unit = line | {"linestyle": linestyle}, METRICS[self.metric].unit
            theme.draw_means(axes, statistics, unit, look, has_band=has_band)
        stops = runs[runs["status"] == "diverged"].groupby("digest")["round"].max()
        means = runs.groupby("round")["value"].mean()
        axes.plot(stops, means.loc[stops], color=line["color"], **CROSSES)

    def draw_paper(self, axes: Axes, matches: Sequence[PaperMatch], style: Style) -> None:
        colors = self.colors(style)
        for match in matches:
            points = [(value.round or 0, value.value) for value in match.values]
            points = [point for point in points if not self.until or point[0] <= self.until]
            if not points:
                continue
            look = theme.PAPER_LINE | (PAPER_POINTS if len(points) <= FEW_POINTS else {})
            # Thinned out as our rounds are, counted from the last.
            points = points[::-1][:: math.ceil(len(points) / MOST_POINTS)][::-1]
            rounds, values = zip(*points, strict=True)
            color = colors[match.labels[self.hue]] if len(colors) > 1 else theme.PAPER_GRAY
            axes.plot(rounds, np.multiply(values, METRICS[self.metric].scale), color=color, **look)
            axes.plot([], [], color=theme.PAPER_GRAY, label=theme.paper_name(match), **look)
        axes.set_xlim(left=0, auto=None)  # again, since drawing more rescales the axis

    def x_title(self, style: Style) -> str:
        return "Local step" if self.x == "step" else style.round

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        line = super().line(value, style, color) | style.stroke(self.hue, value)
        if self.dashed:
            line["linestyle"] = theme.DASHES[value in self.dashed]
        return line

    def remarks(self, measured: DataFrame, style: Style) -> list[str]:
        ends = measured.groupby([*self.facets(), "digest"])["round"].max()
        is_dotted = (ends.groupby(list(self.facets())).nunique() > 1).any()
        every = measured["every"].max() if len(measured) else 1
        points = "steps" if self.x == "step" else "evaluations"
        return [
            *super().remarks(measured, style),
            *(["dotted: fewer runs"] if is_dotted else []),
            *([f"one of {every} {points} is drawn"] if every > 1 else []),
        ]


def bucket_means(rows: DataFrame, size: int) -> DataFrame:
    """The mean of each run's values in rounds 1 to `size`, in the next `size` rounds, and so on, at
    the last round of each bucket. A bucket that a run ended within is left out."""
    sizes = (size * shares_of(rows)).round().clip(lower=1).astype(int)
    ends = -(-rows["round"] // sizes) * sizes
    whole = ends <= rows.groupby("digest")["round"].transform("max")
    means = rows["value"].groupby([rows["digest"], ends]).transform("mean")
    buckets = rows.assign(round=ends, value=means)[whole]
    return buckets.drop_duplicates(["digest", "round"])


def thin_rounds(rows: DataFrame) -> DataFrame:
    """Leave out rounds that lie too close to be told apart: one of two stays, or one of three, and
    so on, counted from the last, and those in which a run ends. The new column `every` says how
    many rounds one stands for."""
    rounds = np.sort(rows["round"].unique())
    every = max(1, math.ceil(len(rounds) / MOST_POINTS))
    ends = rows.groupby("digest")["round"].max()
    return rows[rows["round"].isin([*rounds[::-1][::every], *ends])].assign(every=every)


@dataclass(frozen=True, kw_only=True)
class CostCurves(Averaging):
    """Curves of a metric over a cost: the mean over seeds of the value last measured before a cost
    was spent, with their standard deviation as a band. A curve ends where its cheapest finished run
    does; diverged and unfinished ones keep their last value."""

    name: ClassVar[str] = "cost_curves"
    mark = "curve"
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": "a diverged run keeps its last value",
        "unfinished": "unfinished runs keep theirs so far",
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
            line, unit = self.line(hue, style, color), METRICS[self.metric].unit
            theme.draw_means(axes, mean_over_cost(runs), unit, line)
        self.draw_reference(axes)
        axes.set_xlim(left=0, auto=None)

    def x_title(self, style: Style) -> str:
        return METRICS[self.cost].label.replace(" per round", "")


def mean_over_cost(runs: DataFrame) -> DataFrame:
    """The statistics over runs at costs from the first at which all runs have a value to the last
    that all finished ones reach, or any if none is finished; the costs are the index."""
    curves: list[tuple[np.ndarray, np.ndarray]] = [
        (run["spent"].to_numpy(), run["value"].to_numpy())
        for _, run in runs.sort_values("round").groupby("digest")
    ]
    first = max(spent[0] for spent, _ in curves)
    ends = runs[runs["status"] == "done"].groupby("digest")["spent"].max()
    last = max(first, ends.min() if len(ends) else runs["spent"].max())
    costs = np.linspace(first, last, COSTS_SHOWN)
    values = [value[np.searchsorted(spent, costs, "right") - 1] for spent, value in curves]
    return pd.DataFrame(values).agg(STATISTICS).T.fillna({"std": 0.0}).set_axis(costs)
