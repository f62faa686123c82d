"""A matrix of how often one strategy is ahead of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.across import Estimate, Scores, win_rates
from cohort.results.figures.across import AcrossSettings
from cohort.results.figures.style import LETTER, SIDES, Style, grid_cell
from cohort.results.names import METRICS, Names

if TYPE_CHECKING:
    import matplotlib.colors as mpl_colors
    from matplotlib.axes import Axes
    from pandas import DataFrame
else:
    mpl_colors = lazy("matplotlib.colors")

CELL, FRAME = (0.46, 0.26), (1.3, 2.0)  # inches: width and height
WIDTH = 3.4  # inches: where the note fits into few lines
FEWEST_RUNS = 6  # fewer do not tell a coin from one that always falls on one side
SHADES = ("#D55E00", "#FFFFFF", "#0072B2")  # behind, level, ahead
NOBODY = "#EEEEEE"  # ahead of itself
NARROWEST = 0.2  # inches: a cell that can hold its number
DARK = 0.38  # so far from a half text is white


@dataclass(frozen=True, kw_only=True)
class WinRates(AcrossSettings):
    """A matrix of strategies: the probability of improvement of the row over the column, which is
    the share of seeds in which it is ahead, averaged over settings."""

    name: ClassVar[str] = "win_rates"
    picture: ClassVar[str] = "A matrix"
    shared_x: ClassVar[bool] = False

    def panel_size(self, width: float, hues: int) -> tuple[float, float]:
        wanted, height = (frame + hues * cell for frame, cell in zip(FRAME, CELL, strict=True))
        return min(max(wanted, WIDTH), width), height

    def draw_scores(self, axes: Axes, scores: Scores, style: Style) -> None:
        names, rates = scores.strategies, win_rates(scores)
        matrix = np.full((len(names), len(names)), np.nan)
        for (first, second), rate in rates.items():
            matrix[names.index(first), names.index(second)] = rate.value
        colors = mpl_colors.LinearSegmentedColormap.from_list("ahead", SHADES)
        edges = np.arange(len(names) + 1) - 0.5
        axes.set_facecolor(NOBODY)
        axes.pcolormesh(edges, edges, matrix, cmap=colors, vmin=0, vmax=1, rasterized=True)
        shown = [style.value(self.hue, name) for name in names]
        room = grid_cell(axes)[0] - SIDES - LETTER * max(map(len, shown))
        has_numbers = room / len(names) > NARROWEST
        for (first, second), rate in rates.items() if has_numbers else ():
            axes.text(
                names.index(second),
                names.index(first),
                f"{100 * rate.value:.0f}",
                color="white" if abs(rate.value - 0.5) > DARK else "black",
                fontweight="bold" if _is_clear(rate, scores) else "normal",
                fontsize=7,
                ha="center",
                va="center",
            )
        axes.set_xticks(range(len(names)), shown, rotation=90)
        axes.set_yticks(range(len(names)), shown)
        axes.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(names) - 0.5, -0.5))
        axes.tick_params(length=0)
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)

    def describe_scores(self, scores: Scores, names: Names) -> str:
        rates = win_rates(scores)
        texts = []
        for index, first in enumerate(scores.strategies):
            others = [
                f"{names.value(self.hue, second)} {100 * rates[first, second].value:.0f}"
                for second in scores.strategies[index + 1 :]
            ]
            if others:
                texts.append(f"{names.value(self.hue, first)} ahead of {', '.join(others)}")
        return f"Percent of runs: {'; '.join(texts)}"

    def subject(self) -> str:
        return f"how often the row is ahead of the column by {METRICS[self.metric].title.lower()}"

    def x_title(self, style: Style) -> str:
        return "of this one"

    def y_title(self) -> str:
        return "This is ahead"

    def remarks(self, measured: DataFrame) -> list[str]:
        title = METRICS[self.metric].title.lower()
        numbers = (
            f"percent of seeds (blue: more than half) in which the row has the better {title}"
            ", averaged over settings, a tie as half; bold: its interval of "
            "95\N{NO-BREAK SPACE}% leaves out 50"
        )
        return [*super().remarks(measured), numbers]


def _is_clear(rate: Estimate, scores: Scores) -> bool:
    """Whether a rate's interval lies on one side of a half, and rests on enough runs."""
    if rate.interval is None or scores.values.shape[1] < FEWEST_RUNS:
        return False
    return rate.interval[0] > 0.5 or rate.interval[1] < 0.5
