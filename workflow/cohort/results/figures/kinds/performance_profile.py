"""Performance profiles: the share of a strategy's runs that are better than each threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cohort.results.across import Scores, profiles
from cohort.results.figures.across import AcrossSettings
from cohort.results.figures.style import BAND, FEW_CURVES, Style
from cohort.results.names import METRICS, Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

BANDS = "pointwise bands of 95\N{NO-BREAK SPACE}%, over seeds, by a stratified bootstrap"
SIZE = (4.6, 2.4)  # inches
THRESHOLDS, MARGIN = 301, 0.02  # how many of them, and the share of the range beyond the runs


@dataclass(frozen=True, kw_only=True)
class PerformanceProfile(AcrossSettings):
    """For each value on the x axis, the share of a strategy's runs that are better than it.

    A strategy whose curve is nowhere below another's is better at every quantile. Where curves
    cross, one is better on hard settings and the other on easy ones.
    """

    name: ClassVar[str] = "performance_profile"
    picture: ClassVar[str] = "Curves"
    has_axes: ClassVar[bool] = True
    shared_y: ClassVar[bool | Literal["row"]] = True
    has_legend = True

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        return min(SIZE[0], width), SIZE[1]

    def draw_scores(self, axes: Axes, scores: Scores, style: Style) -> None:
        colors = style.colors(self.hue, list(scores.strategies))
        thresholds, has_bands = _thresholds(scores), len(scores.strategies) <= FEW_CURVES
        for strategy, profile in profiles(scores, thresholds).items():
            color = colors[strategy]
            line = self.line(strategy, style, color)
            axes.plot(thresholds, 100 * profile.shares, drawstyle="steps-post", **line)
            if has_bands and profile.band:
                low, high = profile.band
                axes.fill_between(
                    thresholds, 100 * low, 100 * high, step="post", color=color, **BAND
                )
        axes.set_ylim(-2, 102)
        axes.set_xlim(thresholds[0], thresholds[-1])

    def describe_scores(self, scores: Scores, names: Names) -> str:
        """A sentence with the value that half of each strategy's runs outperform."""
        thresholds = _thresholds(scores)
        texts = []
        for strategy, profile in profiles(scores, thresholds).items():
            middle = thresholds[np.abs(profile.shares - 0.5).argmin()]
            texts.append(f"{names.value(self.hue, strategy)} {self.number(float(middle))}")
        return f"Half of the runs are better than {'; '.join(texts)}"

    def x_title(self, style: Style) -> str:
        return METRICS[self.metric].label

    def y_title(self) -> str:
        return f"Runs {'below' if METRICS[self.metric].better == 'low' else 'above'} (%)"

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        return super().line(value, style, color) | style.stroke(self.hue, value)

    def remarks(self, measured: DataFrame) -> list[str]:
        has_bands = measured[self.hue].nunique() <= FEW_CURVES
        return [*super().remarks(measured), *([BANDS] if has_bands else [])]


def _thresholds(scores: Scores) -> np.ndarray:
    low, high = float(scores.values.min()), float(scores.values.max())
    beyond = MARGIN * (high - low or 1.0)
    return np.linspace(low - beyond, high + beyond, THRESHOLDS)
