"""A scatter plot of clients: how one metric of a client correlates with another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.figures.kind import Kind
from cohort.results.figures.style import Style
from cohort.results.names import BY_CLIENT, METRICS
from cohort.results.series import finite_rows

if TYPE_CHECKING:
    import seaborn
    from matplotlib.axes import Axes
    from pandas import DataFrame, Series
else:
    seaborn = lazy("seaborn")

POINT: dict[str, Any] = {"s": 9, "alpha": 0.65, "linewidth": 0}
FEWEST = 3  # clients for which a rank correlation is shown
RHO = "\N{GREEK SMALL LETTER RHO}"
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, kw_only=True)
class Scatter(Kind):
    """A point for each client of each run, and Spearman's rank correlation per color and panel.

    Nothing is averaged: the clients of all seeds are in one cloud.
    """

    name: ClassVar[str] = "scatter"
    picture: ClassVar[str] = "Points"
    mark = "color"

    metric: str = parameter(enum=BY_CLIENT, help="the metric on the y axis")
    x: str = parameter(enum=BY_CLIENT, help="the metric on the x axis")

    def check(self) -> None:
        if self.also:
            raise UserError(f"a scatter of clients cannot show {self.also[0]} too; leave out also")
        if self.x == self.metric:
            raise UserError(
                f"a scatter of {self.metric} against itself says nothing; choose another x"
            )

    def metrics(self) -> tuple[str, ...]:
        return (self.metric, self.x)

    def measure(self, metrics: DataFrame) -> DataFrame:
        key = ["digest", "client"]
        across = finite_rows(metrics, self.x)[[*key, "value"]].rename(columns={"value": "x"})
        rows = finite_rows(metrics, self.metric).merge(across, on=key)
        return rows.assign(
            value=rows["value"] * METRICS[self.metric].scale, x=rows["x"] * METRICS[self.x].scale
        )

    def draw(self, axes: Axes, panel: DataFrame, cells: DataFrame, style: Style) -> None:
        colors = self.colors(cells, style)
        seaborn.scatterplot(
            panel,
            x="x",
            y="value",
            hue=self.hue,
            hue_order=list(colors),
            palette=colors,
            legend=False,
            ax=axes,
            **POINT,
        )
        correlations = {
            self.handle(hue, style, color): f"{RHO} = {correlation(points['x'], points['value'])}"
            for hue, color, points in self.runs_by_hue(panel, cells, style)
        }
        axes.legend(
            list(correlations),
            list(correlations.values()),
            loc="best",
            handlelength=0.8,
            handletextpad=0.4,
            borderpad=0.2,
            fontsize=7,
        )

    def x_title(self, style: Style) -> str:
        return METRICS[self.x].label

    def line(self, value: str, style: Style, color: str) -> dict[str, Any]:
        return {"color": color, "linestyle": "none", "marker": "o", "markersize": 3.5}

    def remarks(self, measured: DataFrame) -> list[str]:
        return [f"{RHO}: Spearman's rank correlation of the points"]


def correlation(first: Series[float], second: Series[float]) -> str:
    """Spearman's rank correlation as text, or `undefined` for few or constant values."""
    if len(first) < FEWEST or first.nunique() < 2 or second.nunique() < 2:
        return "undefined"
    rho = first.corr(second, method="spearman")
    return f"{rho:.2f}".replace("-", MINUS)
