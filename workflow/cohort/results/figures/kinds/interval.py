"""Interquartile means over settings, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.results.across import Scores, interquartile_means
from cohort.results.figures.across import INTERVALS, AcrossSettings
from cohort.results.figures.style import COLORS, WIDEST, Style
from cohort.results.names import METRICS, Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

BAR: dict[str, Any] = {"linewidth": 6, "alpha": 0.4, "solid_capstyle": "butt"}
POINT: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 1.5}
DOT: dict[str, Any] = {"marker": "o", "markersize": 4}
MOST_COLORS = 10  # of more strategies the colors repeat: they have one, and stand by value
ROW, FRAME = 0.17, 0.75  # inches: the height of a strategy, and of all that is not one


@dataclass(frozen=True, kw_only=True)
class Interval(AcrossSettings):
    """The interquartile mean of each strategy over the runs of all settings, with its interval.

    The mean of the middle half ignores the easiest and the hardest runs, whose values a mean over
    different data sets would mostly show.
    """

    name: ClassVar[str] = "interval"
    picture: ClassVar[str] = "Points with intervals"

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        return min(WIDEST, width), FRAME + ROW * hues

    def draw_scores(self, axes: Axes, scores: Scores, style: Style) -> None:
        estimates = interquartile_means(scores)
        colors = style.colors(self.hue, list(estimates))
        if len(estimates) > MOST_COLORS:
            colors = dict.fromkeys(estimates, COLORS[0])
            if not self.panels():  # whose rows can be compared
                ranked = sorted(estimates.items(), key=lambda entry: entry[1].value)
                estimates = dict(ranked if scores.better == "low" else reversed(ranked))
        for row, (strategy, estimate) in enumerate(estimates.items()):
            color = colors[strategy]
            if estimate.interval:
                axes.plot(estimate.interval, [row, row], color=color, **BAR)
            axes.plot([estimate.value], [row], color=color, **(POINT if estimate.interval else DOT))
        names = [style.value(self.hue, strategy) for strategy in estimates]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")

    def describe_scores(self, scores: Scores, names: Names) -> str:
        texts = []
        for strategy, estimate in interquartile_means(scores).items():
            text = f"{names.value(self.hue, strategy)} {self.number(estimate.value)}"
            if estimate.interval:
                text += " ({} to {})".format(*map(self.number, estimate.interval))
            texts.append(text)
        return "; ".join(texts)

    def subject(self) -> str:
        return f"{METRICS[self.metric].label}, interquartile mean"

    def x_title(self, style: Style) -> str:
        return f"{METRICS[self.metric].label},\ninterquartile mean"  # names leave it little room

    def remarks(self, measured: DataFrame) -> list[str]:
        return [*super().remarks(measured), INTERVALS]
