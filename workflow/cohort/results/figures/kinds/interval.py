"""Strategies compared across settings: interquartile means, each with its interval.

A setting is everything about a run but the strategy (or another hue), the seed and the panel. Only
pairs of a setting and a seed that all compared strategies have count, and a figure says how many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.across import (
    WITHOUT_HELP,
    Scores,
    check_settings,
    interquartile_means,
    ordered_scores,
    runs_by_setting,
    values_left_out,
)
from cohort.results.at import AT_HELP, AT_SCHEMA
from cohort.results.figures.kind import NOTHING_IN_COMMON, Kind
from cohort.results.figures.style import COLORS, WIDEST, Style, say
from cohort.results.measure import Measure
from cohort.results.names import BY_ROUND, METRICS, Names, check_better
from cohort.results.series import runs_without

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

INTERVALS = "intervals of 95\N{NO-BREAK SPACE}%, over seeds, by a stratified bootstrap"
BAR: dict[str, Any] = {"linewidth": 6, "alpha": 0.4, "solid_capstyle": "butt"}
POINT: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 1.5}
DOT: dict[str, Any] = {"marker": "o", "markersize": 4}
MOST_COLORS = 10  # of more strategies the colors repeat: they have one, and stand by value
ROW, FRAME = 0.17, 0.75  # inches: the height of a strategy, and of all that is not one


@dataclass(frozen=True, kw_only=True)
class Interval(Kind):
    """The interquartile mean of each strategy over the runs of all settings, with its interval.

    The mean of the middle half ignores the easiest and the hardest runs, whose values a mean over
    different data sets would mostly show.
    """

    name: ClassVar[str] = "interval"
    shared_y: ClassVar[bool | Literal["row"]] = False  # strategies, which differ between panels
    has_legend = False
    status_notes: ClassVar[Mapping[str, str]] = {
        "diverged": "a diverged run counts with the worst value"
    }

    metric: str = parameter(enum=BY_ROUND, help="what is compared")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    without: dict[str, Any] | None = parameter(None, minProperties=1, help=WITHOUT_HELP)

    def check(self) -> None:
        check_better(self.metric)
        if self.limits:
            raise UserError(f"a figure of kind {self.name} sets its own limits; leave out limits")

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        check_settings(self.hue, self.named(), axes, cells)

    def named(self) -> Mapping[str, list[str]]:
        return values_left_out(self.without)

    def ignores(self, label: str) -> bool:
        return True

    def measures(self) -> list[Measure]:
        return [
            replace(measure, over_settings=True, left_out=self.named())
            for measure in super().measures()
        ]

    def select(self, metrics: DataFrame) -> DataFrame:
        return runs_without(metrics, self.named())

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The finished runs, with the columns value and setting."""
        runs = runs_by_setting(metrics, self.metric, self.at, self.facets())
        return runs.assign(value=runs["value"] * METRICS[self.metric].scale)

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        return min(WIDEST, width), FRAME + ROW * hues

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        scores = self._scores(panel, style)
        if not scores.settings:
            say(axes, NOTHING_IN_COMMON)
            axes.set_yticks([])
            if not self.panels():  # which share their x axis
                axes.set_xticks([])
            return
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

    def x_title(self, style: Style) -> str:
        return f"{METRICS[self.metric].label},\ninterquartile mean"  # names leave it little room

    def y_title(self) -> str:
        return ""

    def count(self, measured: DataFrame) -> str:
        runs = measured["digest"].nunique()
        return f"{runs:,} run{'' if runs == 1 else 's'}"

    def remarks(self, measured: DataFrame) -> list[str]:
        panels = [self._scores(panel, Names()) for _, panel in self._panels(measured)]
        settings = sum(len(scores.settings) for scores in panels)
        runs = sum(scores.values.size for scores in panels)
        common = f"{runs:,} of them, in {settings} settings, with a seed that all strategies have"
        remarks = [common if settings else NOTHING_IN_COMMON] if len(measured) else []
        return [*remarks, *super().remarks(measured), INTERVALS]

    def describe(self, metrics: DataFrame, names: Names) -> list[str]:
        """Sentences that put the figure into words, one for each panel."""
        number = f"{{:.{METRICS[self.metric].digits}f}}".format
        texts = []
        for title, panel in self._panels(self.measure(self.select(metrics))):
            scores, parts = self._scores(panel, names), []
            for strategy, estimate in (
                interquartile_means(scores).items() if scores.settings else ()
            ):
                text = f"{names.value(self.hue, strategy)} {number(estimate.value)}"
                if estimate.interval:
                    text += f" ({' to '.join(map(number, estimate.interval))})"
                parts.append(text)
            text = "; ".join(parts) or NOTHING_IN_COMMON
            texts.append(f"{title}: {text}" if title else text)
        return texts

    def _scores(self, panel: DataFrame, style: Names) -> Scores:
        """The runs of one panel, with strategies in the study's order."""
        return ordered_scores(panel, self.hue, style, METRICS[self.metric].better)

    def _panels(self, measured: DataFrame) -> Iterator[tuple[str, DataFrame]]:
        """Pairs of a panel's name and its measured rows."""
        if self.panels():
            for values, panel in measured.groupby(list(self.panels()), sort=False):
                yield ", ".join(map(str, values)), panel
        elif len(measured):
            yield "", measured
