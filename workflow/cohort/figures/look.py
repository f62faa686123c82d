"""How figures look: fonts, sizes and colors, decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cohort.metrics.names import SERIES, Names, text_orders

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAGE_WIDTH = 7.0  # inches: the text width of a two-column paper
NARROWEST, WIDEST = 1.75, 3.4  # inches of a panel
HEIGHT = 0.68  # of a panel's width
SHORTEST, TALLEST = 1.4, 1.9  # inches of a panel, with its title and ticks
FRAME = 0.5  # inches for the titles of the x axis and the note
LETTER = 0.056  # inches, the mean width of a letter of 8 points
MOST_COLUMNS = 4  # of a grid that may wrap
RESOLUTION = 200

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that no machine draws with another font
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "hatch.linewidth": 0.5,
    "savefig.dpi": RESOLUTION,
    "text.parse_math": False,  # a dollar sign in a title is a dollar sign
    "svg.hashsalt": "cohort",  # the names inside an SVG are random otherwise
    "pdf.fonttype": 42,  # embeds the fonts so that journals accept them
}
NOTE = {"fontsize": 6.5, "color": "#555555"}
BAND_OPACITY = 0.18
PALE = 0.5  # part of white in the color of what is not finished

# Okabe and Ito's colors, which color-blind readers can tell apart, without their yellow, which is too light for a line on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", (0, (5, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (2.5, 1)))
HATCHES = ("", "////", "....", "xxxx")
POINTS = ("o", "s", "^", "v")
STOPPED = (0, (1, 1.2))
NOMINAL = (
    "strategy",
    SERIES,
    "schedule",
    "dataset",
    "model",
)  # labels whose values are names, with no order to be shown by shades
PAPER_LINE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.8}
PAPER_GRAY = "#666666"
UNKNOWN = "#999999"
CROSS = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, kw_only=True)
class Look(Names):
    """The names of a study, and how its hues are drawn: a strategy has the same color and dashes in every figure."""

    styles: dict[str, int]
    round_name: str = "Round"

    @classmethod
    def of(cls, look: Mapping[str, Any]) -> Look:
        """The `look` of a resolved figure."""
        names = {"orders": text_orders(look), "titles": dict(look.get("titles", {}))}
        return cls(
            **names, styles=dict(look.get("styles", {})), round_name=look.get("round", "Round")
        )

    def colors(self, hue: str, values: list[str]) -> dict[str, Any]:
        """A color for each value: a strategy's own, another for each of the names of a label, or shades in the order of the values."""
        if hue in NOMINAL:
            places = self._places(hue)
            return {
                value: COLORS[places[value] % len(COLORS)] if value in places else UNKNOWN
                for value in values
            }
        import seaborn

        scale = self.ordered(hue, [*self.orders.get(hue, []), *values])
        shades = dict(zip(scale, seaborn.color_palette("viridis", len(scale)), strict=True))
        return {value: shades[value] for value in values}

    def pale(self, color: Any) -> tuple[float, ...]:
        """The color of what is not finished."""
        from matplotlib.colors import to_rgb

        return tuple(PALE + (1 - PALE) * part for part in to_rgb(color))

    def dash(self, hue: str, value: str) -> Any:
        """The line style: solid until the colors are used up."""
        return DASHES[self._lap(hue, value) % len(DASHES)]

    def point(self, hue: str, value: str) -> str:
        """The points of a line: round until the colors are used up."""
        return POINTS[self._lap(hue, value) % len(POINTS)]

    def hatch(self, hue: str, value: str) -> str:
        """The hatch of a bar: none until the colors are used up."""
        return HATCHES[self._lap(hue, value) % len(HATCHES)]

    def _lap(self, hue: str, value: str) -> int:
        return self._places(hue).get(value, 0) // len(COLORS)

    def _places(self, hue: str) -> dict[str, int]:
        if hue == "strategy":
            return self.styles
        return (
            {value: place for place, value in enumerate(self.orders.get(hue, []))}
            if hue in NOMINAL
            else {}
        )


def paper_name(source: str) -> str:
    """What a paper's value is called in a legend."""
    return "paper" if source == "printed" else f"paper ({source})"


def panel_width(axes: Axes) -> float:
    """Inches of a panel's share of the figure."""
    figure, grid = axes.get_figure(), axes.get_gridspec()
    assert figure is not None and grid is not None
    return float(figure.bbox.width / figure.dpi / grid.ncols)
