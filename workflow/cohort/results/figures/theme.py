"""The style of every figure: seaborn's theme with our sizes, fonts and colors. What differs from
`ticks` in the context `paper` is in `theme.mplstyle`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.names import FREE, Names
from cohort.results.paper import PaperMatch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

mpl, seaborn = lazy("matplotlib"), lazy("seaborn")
PAGE_WIDTH = 7.0  # inches: the text width of a two-column paper
MIN_WIDTH, MAX_WIDTH = 1.75, 3.4  # inches: the width of a panel
HEIGHT = 0.68  # of a panel's width
MIN_HEIGHT, MAX_HEIGHT = 1.4, 1.9  # inches: the height of a panel, with its title and ticks
SIDES, ENDS = 0.5, 0.6  # inches of a panel's width and height that are not plot area
FRAME = 0.5  # inches for the titles of the x axis and the note
LETTER = 0.056  # inches: the mean width of a letter of 8 points
NAME_HEIGHT = 0.12  # inches: from a name at the end of a curve to the next one
MIN_TICKS = 3  # of an axis

FONT = "DejaVu Sans"  # comes with matplotlib, so every machine draws with the same font
STYLE_SHEET = Path(__file__).with_name("theme.mplstyle")
NOTE = {"fontsize": 7, "color": "#555555"}
BAND: dict[str, Any] = {"alpha": 0.18, "linewidth": 0}
STATISTICS: list[Any] = ["mean", "std", "min", "max"]  # of the runs at a point

# Okabe and Ito's colors for color-blind readers, without their yellow, which is too light for a
# line on white, and three darker ones of Tol's.
OKABE_ITO = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
COLORS = [*OKABE_ITO, "#882255", "#999933", "#332288"]
METHOD_COLOR = "#D55E00"  # of the method that a paper proposes
THIN, LINE, THICK = 1.0, 1.3, 2.0  # points: the widths of lines
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)))
DASHES += ((0, (7, 1, 1, 1, 1, 1)), (0, (8, 2, 2.5, 2)), (0, (4, 1, 4, 1, 1, 1)))
MARKERS = ("o", "s", "^", "v", "P")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "||||")
DARKER = 0.7  # of viridis: its lighter end cannot be seen on white
NOMINAL = ("strategy", *FREE, "schedule", "dataset", "model")  # distinct colors; others: shades
PAPER_LINE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.8}
PAPER_GRAY = "#666666"
UNKNOWN = "#999999"
CROSS = "\N{MULTIPLICATION SIGN}"


def apply_theme() -> None:
    """Set matplotlib's global settings to those of our figures, whatever they were before."""
    mpl.rcdefaults()
    seaborn.set_theme(context="paper", style="ticks", palette=COLORS, font=FONT)
    mpl.rc_file(STYLE_SHEET, use_default_template=False)


@dataclass(frozen=True, kw_only=True)
class Style(Names):
    """Colors, dashes and markers of a study's hues, and the names of its labels.

    `strategies` are all of the study's, the baseline first, so that each looks the same in all of
    its figures; `methods` are those that its paper proposes. `shown_values` has the values of each
    label in one figure, in order.
    """

    strategies: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    round: str = "Round"  # what a round is called
    shown_values: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, style: Mapping[str, Any]) -> Self:
        """The style that the `style` of a resolved figure describes."""
        fields = {key: style[key] for key in ("strategies", "methods", "round") if key in style}
        return replace(super().of(style), **fields)

    def shows(self, labels: Mapping[str, str]) -> bool:
        """Whether the figure shows all these label values."""
        return all(value in self.shown_values[label] for label, value in labels.items())

    def colors(self, hue: str, values: list[str]) -> dict[str, Any]:
        """A color for each value: distinct colors for names, shades of viridis in order else."""
        if hue in NOMINAL:
            return {value: self._color_and_dash(hue, value)[0] for value in values}
        scale = self.ordered(hue, [*self.orders.get(hue, []), *values])
        shades = mpl.colormaps["viridis"](np.linspace(0, DARKER, len(scale)))
        by_value = dict(zip(scale, map(mpl.colors.to_hex, shades), strict=True))
        return {value: by_value[value] for value in values}

    def look(self, hue: str, value: str, looks: Sequence[Any]) -> Any:
        """A value's dashes, marker or hatching, of these `looks`: the first for the paper's own
        method or else the first name. So curves and bars differ in more than their color."""
        return looks[self._color_and_dash(hue, value)[1] % len(looks)]

    def stroke(self, hue: str, value: str) -> dict[str, float]:
        """The width and order of a line: the paper's own method is thick, behind the thin ones."""
        hue, value = self._as_strategy(hue, value)
        if hue not in ("strategy", *FREE) or not self.methods:
            return {"linewidth": LINE}
        is_own = value in self.methods
        return {"linewidth": THICK if is_own else THIN, "zorder": 2 if is_own else 3}

    def _color_and_dash(self, hue: str, value: str) -> tuple[str, int]:
        """A name's color, and the index of its dash."""
        hue, value = self._as_strategy(hue, value)
        if hue not in NOMINAL:  # whose colors are shades
            shown = self.shown_values.get(hue, [])
            return UNKNOWN, shown.index(value) if value in shown else 0
        if hue == "strategy" and value in self.methods:
            index = self.methods.index(value)
            return METHOD_COLOR, index
        names = self.strategies
        if hue != "strategy":  # of an invented label that names strategies, these come first
            order = self.orders.get(hue, [])
            others = [name for name in order if self._as_strategy(hue, name)[0] == hue]
            names = order if len(others) == len(order) else [*self.strategies, *others]
        names = [name for name in names if name not in self.methods]
        if value not in names:
            return UNKNOWN, 0
        index, has_own = names.index(value), hue in ("strategy", *FREE) and bool(self.methods)
        if index == 0:
            return COLORS[0], int(has_own)
        colors = [color for color in COLORS[1:] if not has_own or color != METHOD_COLOR]
        lap, color = divmod(index - 1, len(colors))
        return colors[color], 1 + (color + lap + has_own) % (len(DASHES) - 1)

    def _as_strategy(self, hue: str, value: str) -> tuple[str, str]:
        """The strategy whose name an invented label has: it looks the same under both."""
        if hue in FREE:
            for strategy in self.strategies:
                if self.value("strategy", strategy) == self.value(hue, value):
                    return "strategy", strategy
        return hue, value


def deviation_limits(statistics: Any, unit: str) -> tuple[Any, Any]:
    """The limits one standard deviation from a mean, cut at 0 and 100 % where no value lies beyond;
    `statistics` holds the `STATISTICS` of one point, or a table of several points'."""
    mean, sd, lowest, highest = (statistics[name] for name in STATISTICS)
    low = np.where(lowest >= 0, np.maximum(mean - sd, 0), mean - sd)
    return low, np.where((unit == "%") & (highest <= 100), np.minimum(mean + sd, 100), mean + sd)


def draw_means(
    axes: Axes, statistics: Any, unit: str, props: Mapping[str, Any], *, has_band: bool = True
) -> None:
    """Draw means as a line over their index, with a band that reaches `std` up and down."""
    axes.plot(statistics.index, statistics["mean"], markeredgewidth=0.75, **props)
    if has_band:
        limits = deviation_limits(statistics, unit)
        axes.fill_between(statistics.index, *limits, color=props["color"], **BAND)


def paper_name(match: PaperMatch) -> str:
    """The legend's name for a paper's values: `paper` or `paper (authors' log)`, by source."""
    source = match.values[0].source
    return "paper" if source == "printed" else f"paper ({source})"


def span(numbers: Iterable[int]) -> str:
    """The smallest and the largest number as text: `1 to 5`, or `5` if they are the same."""
    ordered = sorted(numbers)
    return " to ".join(dict.fromkeys([str(ordered[0]), str(ordered[-1])]))


def show_message(axes: Axes, reason: str) -> None:
    """Write into an empty panel why it is empty."""
    middle: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center", "va": "center"}
    axes.annotate(reason, (0.5, 0.5), color=NOTE["color"], **middle)
    axes.grid(visible=False)
    axes.tick_params(length=0)


def grid_cell(axes: Axes) -> tuple[float, float]:
    """The width and height in inches of these axes with their margins, before there is a legend."""
    grid, figure = axes.get_gridspec(), axes.get_figure(root=True)
    assert grid and figure
    width, height = figure.get_size_inches()
    return float(width / grid.ncols), float((height - FRAME) / grid.nrows)


def set_integer_ticks(axes: Axes, axis: Literal["x", "y"], count: int) -> None:
    """Put the ticks of an axis at whole numbers; `count` is how many it shows."""
    axes.locator_params(axis=axis, integer=True, min_n_ticks=min(MIN_TICKS, count))


def set_category_ticks(axes: Axes, names: list[str]) -> None:
    """Name the positions 0, 1, 2, ... of the x axis, on several lines or slanted in little room."""
    room = int((grid_cell(axes)[0] - SIDES) / len(names) / LETTER) - 1
    wrapped = [fill(name, max(room, 1), break_long_words=False) for name in names]
    if max(len(line) for name in wrapped for line in name.splitlines()) > room:
        slanted: dict[str, Any] = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(range(len(names)), names, **slanted)
    else:
        axes.set_xticks(range(len(names)), wrapped)
