"""Which client holds how much of which class: a bubble for each, or a field of color where there are too many for bubbles."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from cohort.cell.settings import SHARD_KEYS
from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.figures.kind import Kind
from cohort.figures.look import COLORS, FRAME, panel_width
from cohort.metrics.summary import finite_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from pandas import DataFrame

    from cohort.figures.look import Look

POINTS = 72.0  # in an inch
SIDES, ENDS = 0.5, 0.6  # inches of a panel beside and above or below what is drawn in it
SMALLEST, LARGEST = (
    4.0,
    14.0,
)  # points: the room of a bubble below which colors are drawn, and its greatest diameter
SHADES = ("#dbe9f6", COLORS[0], "#00213d")


@dataclass(frozen=True, kw_only=True)
class Shards(Kind):
    """Clients along the x axis, classes up the y axis; the area of a bubble, or the color, is the number of samples.

    Cells that differ in what shards do not depend on, as in their strategy, look alike and need not be kept apart. Nothing is averaged: of
    several seeds the first one that has a record is drawn. Numbers of samples have one scale in all panels; data sets with other numbers of
    classes are best laid one below the other (`rows: dataset`), as the panels of a row share their y axis.
    """

    name: ClassVar[str] = "shards"
    shared_y: ClassVar[bool | Literal["row"]] = "row"

    metric: str = parameter("label_count", enum=["label_count"], help="what is drawn")

    def check(self) -> None:
        if self.also:
            raise UserError(
                f"shards have no rounds, so {self.also} cannot be drawn beside them; leave out also"
            )
        if self.hue != "strategy":
            raise UserError(
                f"shards have no hue; leave out hue: {self.hue}, or make it panels (columns, rows)"
            )

    def facets(self) -> tuple[str, ...]:
        return self.panels()

    def shown(self) -> tuple[str, ...]:
        return self.facets() or ("seed",)

    def ignores(self, label: str) -> bool:
        return label not in SHARD_KEYS

    def measure(self, metrics: DataFrame) -> DataFrame:
        rows = finite_rows(metrics, self.metric)
        runs = rows.drop_duplicates("digest")
        runs = runs.assign(number=runs["seed"].astype(int)).sort_values(["number", "digest"])
        first = runs.drop_duplicates(list(self.facets())) if self.facets() else runs.head(1)
        rows = rows[rows["digest"].isin(first["digest"])].astype({"client": int, "label": int})
        return rows.assign(
            **{f"most_{name}": rows[name].max() for name in ("value", "client", "label")}
        )

    def paint(self, axes: Axes, panel: DataFrame, cells: DataFrame, look: Look) -> None:
        most, clients, classes = (
            panel["most_value"].iloc[0],
            1 + panel["most_client"].iloc[0],
            1 + panel["most_label"].iloc[0],
        )
        room = min(
            (panel_width(axes) - SIDES) * POINTS / clients,
            (_panel_height(axes) - ENDS) * POINTS / classes,
        )
        if room < SMALLEST:
            self._field(axes, panel, most)
        else:
            self._bubbles(axes, panel, min(room, LARGEST) ** 2 / most, most)
        axes.set(
            xlim=(-0.6, clients - 0.4),
            ylim=(-0.6, max(axes.get_ylim()[1], panel["label"].max() + 0.6)),
        )
        axes.locator_params(axis="both", integer=True, min_n_ticks=1)

    def _bubbles(self, axes: Axes, panel: DataFrame, area: float, most: float) -> None:
        """`area` of one sample, in square points."""
        style: dict[str, Any] = {"color": COLORS[0], "linewidth": 0}
        axes.scatter(panel["client"], panel["label"], panel["value"] * area, **style)
        for value in key_values(most):
            axes.scatter([], [], value * area, label=_samples(value), **style)

    def _field(self, axes: Axes, panel: DataFrame, most: float) -> None:
        import numpy as np

        clients, labels = panel["client"].to_numpy(), panel["label"].to_numpy()
        counts = np.zeros((labels.max() + 1, clients.max() + 1))
        counts[labels, clients] = panel["value"]
        colors, scale = _colors(most)
        edges = (np.arange(size + 1) - 0.5 for size in counts.shape[::-1])
        axes.pcolormesh(
            *edges, np.ma.masked_equal(counts, 0), cmap=colors, norm=scale, rasterized=True
        )
        axes.grid(visible=False)
        for value in key_values(most):
            axes.scatter([], [], 40, marker="s", color=colors(scale(value)), label=_samples(value))

    def x_title(self, look: Look) -> str:
        return "Client"

    def y_title(self) -> str:
        return "Class"

    def remarks(self, statuses: set[str]) -> list[str]:
        return ["each panel shows its first seed"]

    def mark(self) -> str:
        return "panel"

    def keyed(self) -> bool:
        return False


def key_values(most: float) -> list[int]:
    """Up to three round numbers of samples that the key shows: about the highest, a quarter of it, and a sixteenth."""
    values = [most / part for part in (16, 4, 1) if most >= part]
    powers = [10 ** floor(log10(value)) for value in values]
    return sorted(
        {int(value // power * power) for value, power in zip(values, powers, strict=True)}
    )


def _samples(value: int) -> str:
    return f"{value:,} sample{'' if value == 1 else 's'}"


def _colors(most: float) -> tuple[Colormap, Normalize]:
    """A scale on which small numbers can be told from none: as the diameter of bubbles, not their area."""
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm

    return LinearSegmentedColormap.from_list("samples", SHADES), PowerNorm(0.5, vmin=0, vmax=most)


def _panel_height(axes: Axes) -> float:
    figure, grid = axes.get_figure(), axes.get_gridspec()
    assert figure is not None and grid is not None
    return float((figure.bbox.height / figure.dpi - FRAME) / grid.nrows)
