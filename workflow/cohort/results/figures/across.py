"""The base of the kinds of figures that compare strategies across settings.

A setting is everything about a run but the strategy (or another hue), the seed and the panel. Only
pairs of a setting and a seed that all compared strategies have count, and a figure says on its face
how many these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.across import (
    WITHOUT_HELP,
    Scores,
    check_settings,
    ordered_scores,
    runs_by_setting,
    values_left_out,
)
from cohort.results.at import AT_HELP, AT_SCHEMA
from cohort.results.figures.kind import Kind
from cohort.results.figures.style import Style, say
from cohort.results.measure import Measure
from cohort.results.names import BY_ROUND, METRICS, Names, check_better, span
from cohort.results.series import runs_without

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from pandas import DataFrame
else:
    pd = lazy("pandas")

NOTHING_IN_COMMON = "no seed of a setting that all strategies have"
INTERVALS = "intervals of 95\N{NO-BREAK SPACE}%, over seeds, by a stratified bootstrap"


@dataclass(frozen=True, kw_only=True)
class AcrossSettings(Kind):
    """Base of the kinds of figures that compare strategies across settings."""

    is_across: ClassVar[bool] = True
    has_axes: ClassVar[bool] = False
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
        check_settings(self.hue, values_left_out(self.without), axes, cells)

    def named(self) -> Mapping[str, Sequence[str]]:
        return values_left_out(self.without)

    def ignores(self, label: str) -> bool:
        return True

    def measures(self) -> list[Measure]:
        left_out = values_left_out(self.without)
        return [
            replace(measure, over_settings=True, left_out=left_out)
            for measure in super().measures()
        ]

    def select(self, metrics: DataFrame) -> DataFrame:
        return runs_without(metrics, values_left_out(self.without))

    def measure(self, metrics: DataFrame) -> DataFrame:
        """The finished runs, with the columns value, setting, `apart` (the labels that tell
        settings apart), and `lacking` (how many values of the hue have no runs)."""
        runs = runs_by_setting(metrics, self.metric, self.at, self.facets())
        return runs.assign(
            value=runs["value"] * METRICS[self.metric].scale,
            lacking=metrics[self.hue].nunique() - runs[self.hue].nunique(),
        )

    def scores(self, panel: DataFrame, style: Names) -> Scores:
        """The runs of one panel, with strategies in the study's order."""
        return ordered_scores(panel, self.hue, style, METRICS[self.metric].better)

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        scores = self.scores(panel, style)
        if scores.settings:
            self.draw_scores(axes, scores, style)
        else:
            say(axes, NOTHING_IN_COMMON)
            if not (self.panels() and self.shared_x):
                axes.set_xticks([])
            if not (self.panels() and self.shared_y):
                axes.set_yticks([])

    def y_title(self) -> str:
        return ""

    def draw_scores(self, axes: Axes, scores: Scores, style: Style) -> None:
        """Draw how the strategies of one panel compare over all settings that they share, of which
        there is at least one. Each kind has its own way."""
        raise NotImplementedError

    def count(self, measured: DataFrame) -> str:
        runs = measured["digest"].nunique()
        return f"{runs:,} run{'' if runs == 1 else 's'}"

    def remarks(self, measured: DataFrame) -> list[str]:
        panels = [self.scores(panel, Names()) for _, panel in self._panels(measured)]
        remarks = [_extent(panels, str(measured["apart"].iloc[0]))] if panels else []
        used = sum(scores.values.size for scores in panels)
        if left := len(measured) - used:
            remarks.append(f"{left} runs left out, since not all strategies have their seed")
        lacking = int(measured["lacking"].max()) if len(measured) else 0
        if lacking:
            remarks.append(f"{lacking} more without runs")
        return [*remarks, *super().remarks(measured)]

    def describe(self, metrics: DataFrame, names: Names) -> list[str]:
        measured = self.measure(self.select(metrics))
        texts: list[str] = []
        for title, panel in self._panels(measured):
            scores = self.scores(panel, names)
            text = self.describe_scores(scores, names) if scores.settings else NOTHING_IN_COMMON
            texts.append(f"{title}: {text}" if title else text)
        return texts

    def describe_scores(self, scores: Scores, names: Names) -> str:
        """A sentence with the numbers that `draw_scores` shows in one panel."""
        raise NotImplementedError

    def number(self, value: float) -> str:
        """A value of the metric as text."""
        return f"{value:.{METRICS[self.metric].digits}f}"

    def _panels(self, measured: DataFrame) -> Iterator[tuple[str, DataFrame]]:
        """Pairs of a panel's name and its measured rows."""
        if not self.panels():
            yield from [("", measured)] if len(measured) else []
            return
        for values, panel in measured.groupby(list(self.panels()), sort=False):
            yield ", ".join(map(str, values)), panel


def _extent(panels: Sequence[Scores], apart: str) -> str:
    """A text on how many settings and seeds the figure compares."""
    settings = span([len(scores.settings) for scores in panels])
    if settings == "0":
        return NOTHING_IN_COMMON
    text = f"{settings} setting{'' if settings == '1' else 's'}"
    text += f" ({apart})" if apart else ""
    seeds = [int(count) for scores in panels for count in scores.seeds]
    return f"{text}, {span(seeds)} seed{'' if max(seeds) == 1 else 's'} in each"
