"""Each client as a point: how one thing that is known of it goes with another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.figures.kind import Kind
from cohort.metrics.names import BY_CLIENT, METRICS
from cohort.metrics.summary import finite_rows

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from pandas import DataFrame, Series

    from cohort.figures.look import Look

POINT: dict[str, Any] = {"s": 9, "alpha": 0.65, "linewidths": 0}
FEWEST = 3  # clients of which a rank correlation says anything
RHO = "\N{GREEK SMALL LETTER RHO}"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, kw_only=True)
class Scatter(Kind):
    """A point for each client of each run, and Spearman's rank correlation of all points of a color in a panel.

    Clients are not averaged, so those of several seeds lie in one cloud.
    """

    name: ClassVar[str] = "scatter"

    metric: str = parameter(enum=BY_CLIENT, help="what is drawn upwards")
    x: str = parameter(enum=BY_CLIENT, help="what is drawn to the right")

    def check(self) -> None:
        if self.also:
            raise UserError(
                f"a scatter of clients cannot have {self.also} beside it, which is of a whole run; leave out also"
            )
        if self.x == self.metric:
            raise UserError(
                f"a scatter of {self.metric} against itself says nothing; choose another x"
            )

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.x)

    def measure(self, metrics: DataFrame) -> DataFrame:
        across = finite_rows(metrics, self.x)[["digest", "client", "value"]].rename(
            columns={"value": "x"}
        )
        rows = finite_rows(metrics, self.metric).merge(across, on=["digest", "client"])
        return rows.assign(
            value=rows["value"] * METRICS[self.metric].scale, x=rows["x"] * METRICS[self.x].scale
        )

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        hues = look.ordered(self.hue, cells[self.hue])
        colors = look.colors(self.hue, hues)
        said = {}
        for hue in hues:
            points = panel[panel[self.hue] == hue]
            if len(points):
                axes.scatter(points["x"], points["value"], color=colors[hue], **POINT)
                said[hue] = f"{RHO} = {correlation(points['x'], points['value'])}"
        handles = [self.handle(hue, look, colors[hue]) for hue in said]
        axes.legend(
            handles,
            list(said.values()),
            loc="best",
            handlelength=0.8,
            handletextpad=0.4,
            borderpad=0.2,
            fontsize=7,
        )

    def x_title(self, look: Look) -> str:
        return METRICS[self.x].label

    def handle(self, value: str, look: Look, color: str) -> Artist:
        from matplotlib.lines import Line2D

        return Line2D([], [], color=color, linestyle="none", marker="o", markersize=3.5)

    def remarks(self, statuses: set[str]) -> list[str]:
        return [f"{RHO}: Spearman's rank correlation of the points"]

    def mark(self) -> str:
        return "color"


def correlation(first: Series[float], second: Series[float]) -> str:
    """Spearman's rank correlation as text; a word where there is none."""
    from scipy.stats import spearmanr

    if len(first) < FEWEST or first.nunique() < 2 or second.nunique() < 2:
        return "undefined"
    return f"{spearmanr(first, second).statistic:.2f}".replace("-", MINUS)
