"""Places the panels of a figure: a grid for each of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from pandas import DataFrame

from cohort.results.figures import style as sizes
from cohort.results.figures.kind import Kind
from cohort.results.figures.style import Style
from cohort.results.paper_match import PaperMatch

Grid = dict[tuple[int, int], Axes]
"""The panels of one part of a figure, by row and column."""


@dataclass(frozen=True)
class Panel:
    """A panel: its row and column in the grid, and the label values that its runs share."""

    row: int
    column: int
    values: dict[str, str]

    def select(self, frame: DataFrame) -> DataFrame:
        """The rows that belong to the panel."""
        for label, value in self.values.items():
            frame = frame[frame[label] == value]
        return frame

    def matches(self, everything: Iterable[PaperMatch]) -> list[PaperMatch]:
        """The matches of the paper's values that belong to the panel and have values."""
        wanted = self.values.items()
        return [match for match in everything if match.values and wanted <= match.labels.items()]


def begun_panels(planned: list[Panel], cells: DataFrame) -> list[Panel]:
    """The panels that have runs, without gaps between them; all if there are none."""
    runs = cells[cells["status"] != "missing"]
    begun = [panel for panel in planned if len(panel.select(runs))]
    if len(begun) in (0, len(planned)):
        return planned
    rows = sorted({panel.row for panel in begun})
    columns = sorted({panel.column for panel in begun})
    if len(begun) == len(rows) * len(columns):
        return [
            Panel(rows.index(panel.row), columns.index(panel.column), panel.values)
            for panel in begun
        ]
    width = min(len(columns), _even(len(begun)))
    return [Panel(*divmod(index, width), panel.values) for index, panel in enumerate(begun)]


def arrange(kind: Kind, cells: DataFrame, style: Style) -> list[Panel]:
    """Make a panel for each value of `rows` and `columns` that has planned cells, and place it;
    columns alone wrap to a grid."""
    orders = {label: style.ordered(label, cells[label]) for label in kind.panels()}
    if not orders or cells.empty:
        return [Panel(0, 0, {})]
    if kind.rows and kind.columns:
        planned = set(zip(cells[kind.rows], cells[kind.columns], strict=True))
        return [
            Panel(y, x, {kind.rows: row, kind.columns: column})
            for y, row in enumerate(orders[kind.rows])
            for x, column in enumerate(orders[kind.columns])
            if (row, column) in planned
        ]
    ((label, values),) = orders.items()
    width = 1 if kind.rows else _even(len(values))
    return [Panel(*divmod(index, width), {label: value}) for index, value in enumerate(values)]


def make_grids(
    panels: list[Panel], parts: int, kind: Kind, *, hues: int, share_x: bool, is_narrow: bool
) -> tuple[Figure, list[Grid]]:
    """Make an empty figure, and for each of so many `parts` (metrics) a grid with all panels.

    All panels share their x axis, or else those of a part, which share their y axis as well; those
    of a kind that names strategies along an axis do not share it.
    """
    starts = _starts(panels, parts, is_narrow)
    rows, columns = _extent(panels)
    down = rows + max(row for row, _ in starts)
    across = columns + max(column for _, column in starts)
    page = sizes.PHONE_WIDTH if is_narrow else sizes.PAGE_WIDTH
    width, height = kind.panel_size(max(sizes.NARROWEST, page / across), hues)
    figure = Figure(figsize=(width * across, height * down + sizes.FRAME), layout="constrained")
    FigureCanvasAgg(figure)
    by_row = kind.shared_y == "row"
    subplots = figure.subplots(
        down,
        across,
        sharex=share_x and kind.shared_x,
        sharey=kind.shared_y if parts == 1 and not (is_narrow and by_row) else False,
        squeeze=False,
    )
    for axes in subplots.flat:
        axes.locator_params(axis="both", min_n_ticks=sizes.FEWEST_TICKS)
    places = sorted((panel.row, panel.column) for panel in panels)
    grids: list[Grid] = []
    for row, column in starts:
        grids.append({(y, x): subplots[row + y][column + x] for y, x in places})
    used = [axes for grid in grids for axes in grid.values()]
    for axes in subplots.flat:
        if axes not in used:
            axes.remove()
    for grid in grids if parts > 1 else []:
        first, *others = grid.values()
        for axes in others:
            if kind.shared_y:
                axes.sharey(first)
            if kind.shared_x and not share_x:
                axes.sharex(first)
    return figure, grids


def rearranged_panels(panels: list[Panel], parts: int, *, is_narrow: bool) -> list[Panel]:
    """Rearrange the panels of one of a figure's `parts` (metrics): one below the other on a phone,
    or in one row if those of all parts would otherwise be too narrow side by side."""
    if is_narrow:
        return [replace(panel, row=row, column=0) for row, panel in enumerate(panels)]
    _, columns = _extent(panels)
    if parts > 1 and columns * parts > sizes.MOST_COLUMNS >= len(panels):
        return [replace(panel, row=0, column=column) for column, panel in enumerate(panels)]
    return panels


def _starts(panels: list[Panel], parts: int, is_narrow: bool) -> list[tuple[int, int]]:
    """The row and the column at which each part begins: side by side, or one below the other if
    they are many; parts of a single panel wrap."""
    rows, columns = _extent(panels)
    if is_narrow or (columns > 1 and columns * parts > sizes.MOST_COLUMNS):
        return [(part * rows, 0) for part in range(parts)]
    if len(panels) == 1:
        width = _even(parts, sizes.MOST_PARTS)
        return [divmod(part, width) for part in range(parts)]
    return [(0, part * columns) for part in range(parts)]


def _extent(panels: list[Panel]) -> tuple[int, int]:
    """The number of rows and of columns of one part."""
    return 1 + max(panel.row for panel in panels), 1 + max(panel.column for panel in panels)


def _even(panels: int, most: int = sizes.MOST_COLUMNS) -> int:
    """The number of panels in a row if as few rows as possible are filled evenly."""
    return ceil(panels / ceil(panels / most))
