"""A metric over the rounds: the mean of the seeds as a line, their spread as a band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.figures.kind import Averaging
from cohort.figures.look import (
    BAND_OPACITY,
    CROSS,
    DASHES,
    PAPER_GRAY,
    PAPER_LINE,
    STOPPED,
    paper_name,
)
from cohort.metrics.names import BY_ROUND, METRICS
from cohort.metrics.summary import finite_rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from cohort.figures.look import Look
    from cohort.metrics.paper_match import Beside

ODD: dict[str, Any] = {"not": {"multipleOf": 2}}
FEW_POINTS = 12  # a curve of so few points shows each of them


@dataclass(frozen=True, kw_only=True)
class Curves(Averaging):
    """Learning curves.

    A run that diverged or is not finished is drawn as far as it got. From there on the mean is one of fewer runs, and its line is dotted.
    """

    name: ClassVar[str] = "curves"

    metric: str = parameter(enum=BY_ROUND, help="what is drawn")
    smoothing: int = parameter(
        1, minimum=1, help="moving average over so many evaluated points, an odd number", **ODD
    )
    band: Literal["sd", "none"] = parameter(
        "sd", help="standard deviation over the seeds, or no band"
    )
    until: int | None = parameter(
        None, minimum=1, help="the last round that is shown; all of them if not said"
    )
    dashed: list[str] | None = parameter(
        None,
        items={"type": "string"},
        minItems=1,
        help="the values of the hue whose curves are dashed",
    )
    paper: str = parameter(
        "",
        help="the figure of the paper whose curves are drawn too, as resources/paper_values/{study}_curves.csv calls it",
    )

    def named(self) -> Mapping[str, Sequence[str]]:
        return {self.hue: self.dashed or ()}

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = finite_rows(metrics, self.metric)
        values = rows["value"] * METRICS[self.metric].scale
        if self.smoothing > 1:
            window = values.groupby(rows["digest"]).rolling(
                self.smoothing, center=True, min_periods=1
            )
            values = window.mean().droplevel(0)
        rows = rows.assign(value=values, round=rows["round"].astype(int))
        return rows[rows["round"] <= self.until] if self.until else rows

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        hues = look.ordered(self.hue, cells[self.hue])
        colors = look.colors(self.hue, hues)
        for hue in hues:
            runs = panel[panel[self.hue] == hue]
            if len(runs):
                self._curve(axes, runs, colors[hue], self._dash(hue, look))
        self.refer(axes)
        axes.margins(x=0.02)
        axes.locator_params(axis="x", integer=True)
        _begin_at_zero(axes)

    def _curve(self, axes: Axes, runs: DataFrame, color: str, dash: object) -> None:
        points = runs.groupby("round")["value"].agg(["mean", "std", "count"])
        complete = points.index[points["count"] == runs["digest"].nunique()]
        end = complete.max() if len(complete) else points.index.min()
        marker = "o" if len(points) <= FEW_POINTS else None
        for part, style in ((points.loc[:end], dash), (points.loc[end:], STOPPED)):
            axes.plot(
                part.index,
                part["mean"],
                color=color,
                linestyle=style,
                marker=marker,
                markersize=2.5,
            )
        if self.band == "sd":
            low, high = points["mean"] - points["std"], points["mean"] + points["std"]
            axes.fill_between(points.index, low, high, color=color, alpha=BAND_OPACITY, linewidth=0)
        stops = runs[runs["status"] == "diverged"].groupby("digest")["round"].max()
        axes.plot(
            stops,
            points["mean"].loc[stops],
            color=color,
            linestyle="none",
            marker="x",
            markersize=5,
            markeredgewidth=1.3,
        )

    def paint_paper(self, axes: Axes, beside: list[Beside], cells: DataFrame, look: Look) -> None:
        colors = look.colors(self.hue, look.ordered(self.hue, cells[self.hue]))
        scale = METRICS[self.metric].scale
        for one in beside:
            color = colors[one.labels[self.hue]] if len(colors) > 1 else PAPER_GRAY
            points = [
                (value.round or 0, value.value * scale)
                for value in one.values
                if not self.until or (value.round or 0) <= self.until
            ]
            axes.plot(*zip(*points, strict=True), color=color, **PAPER_LINE)
            axes.plot(
                [], [], color=PAPER_GRAY, label=paper_name(one.values[0].source), **PAPER_LINE
            )
        _begin_at_zero(axes)

    def x_title(self, look: Look) -> str:
        return look.round_name

    def handle(self, value: str, look: Look, color: str) -> Artist:
        from matplotlib.lines import Line2D

        return Line2D([], [], color=color, linestyle=self._dash(value, look))

    def _dash(self, hue: str, look: Look) -> Any:
        return DASHES[1] if hue in (self.dashed or ()) else look.dash(self.hue, hue)

    def remarks(self, statuses: set[str]) -> list[str]:
        crosses = [f"{CROSS}: a run diverged"] if "diverged" in statuses else []
        unfinished = ["unfinished runs included"] if "unfinished" in statuses else []
        dotted = ["dotted: fewer runs"] if statuses & {"diverged", "unfinished"} else []
        return [*unfinished, *crosses, *dotted]

    def mark(self) -> str:
        return "curve"


def _begin_at_zero(axes: Axes) -> None:
    """To be said after each thing drawn, for drawing more lets matplotlib choose again."""
    axes.set_xlim(left=0, auto=None)
