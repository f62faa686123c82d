"""The sheet that a kind of figure paints on: a grid of panels, one legend above them, and below a note on the runs behind them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from cohort.figures.kind import Kind
from cohort.figures.look import HEIGHT, MOST_COLUMNS, NARROWEST, NOTE, PAGE_WIDTH, TALLEST, WIDEST, Look
from cohort.figures.names import METRICS
from cohort.records.summary import cells_of, runs_behind

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

NO_RUNS = "no runs yet"


@dataclass(frozen=True)
class Panel:
    """One panel: where it lies, and the label values that its runs share."""

    line: int
    column: int
    values: dict[str, str]

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows that belong to the panel."""
        for label, value in self.values.items():
            frame = frame[frame[label] == value]
        return frame


def sheet(kind: Kind, metrics: DataFrame, look: Look) -> Figure:
    """The whole figure, ready to be saved."""
    cells, measured = cells_of(metrics), kind.measure(metrics)
    panels = arrange(kind, cells, look)
    figure, axes = _grid(panels)
    for panel in panels:
        _fill(kind, axes[panel.line, panel.column], panel.of(measured), panel.of(cells), cells, look)
        axes[panel.line, panel.column].set_title(_title(panel, look))
    _name_axes(kind, axes, panels, look)
    _fit_legend(figure, _entries(kind, axes, measured, cells, look))
    figure.supxlabel(note(kind, measured, cells), x=0.99, ha="right", **NOTE)
    return figure


def arrange(kind: Kind, cells: DataFrame, look: Look) -> list[Panel]:
    """Where each panel lies: columns side by side, rows one below the other; only one of them given, the panels wrap."""
    lines = look.ordered(kind.rows, cells[kind.rows]) if kind.rows else []
    columns = look.ordered(kind.columns, cells[kind.columns]) if kind.columns else []
    if lines and columns and kind.rows and kind.columns:
        return [Panel(y, x, {kind.rows: line, kind.columns: column}) for y, line in enumerate(lines) for x, column in enumerate(columns)]
    if kind.rows and lines:
        return [Panel(y, 0, {kind.rows: line}) for y, line in enumerate(lines)]
    if kind.columns and columns:
        width = ceil(len(columns) / ceil(len(columns) / MOST_COLUMNS))
        return [Panel(*divmod(place, width), {kind.columns: column}) for place, column in enumerate(columns)]
    return [Panel(0, 0, {})]


def note(kind: Kind, measured: DataFrame, cells: DataFrame) -> str:
    """How many runs stand behind the figure, and what its marks mean when some of them went wrong or are not there."""
    runs = runs_behind(cells)
    parts = [runs.phrase if runs.planned else NO_RUNS]
    if runs.done == runs.planned and len(measured):
        seeds = measured.groupby(list(kind.shown()))["digest"].nunique()
        fewest, most = seeds.min(), seeds.max()
        count = str(most) if fewest == most else f"{fewest}–{most}"
        parts = [f"n = {count} {'seed' if most == 1 else 'seeds'} per {kind.mark}"]
    return "; ".join([*parts, *kind.remarks(set(measured["status"]))])


def _grid(panels: list[Panel]) -> tuple[Figure, dict[tuple[int, int], Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines, columns = 1 + max(panel.line for panel in panels), 1 + max(panel.column for panel in panels)
    width = min(WIDEST, max(NARROWEST, PAGE_WIDTH / columns))
    height = min(TALLEST, width * HEIGHT)
    figure = Figure(figsize=(width * columns, height * lines + 0.75), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    axes = {(panel.line, panel.column): grid[panel.line][panel.column] for panel in panels}
    for line in range(lines):
        for column in range(columns):
            if (line, column) not in axes:
                grid[line][column].remove()
    return figure, axes


def _fill(kind: Kind, axes: Axes, measured: DataFrame, planned: DataFrame, cells: DataFrame, look: Look) -> None:
    if len(measured):
        kind.paint(axes, measured, cells, look)
    else:
        words = NO_RUNS if len(planned) or not len(cells) else "not planned"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=NOTE["color"])
    if kind.limits:
        axes.set_ylim(*kind.limits)


def _title(panel: Panel, look: Look) -> str:
    parts = [look.phrase(label, value) for label, value in reversed(panel.values.items())]
    return ", ".join(parts) if sum(map(len, parts)) < 30 else ",\n".join(parts)


def _name_axes(kind: Kind, axes: dict[tuple[int, int], Axes], panels: list[Panel], look: Look) -> None:
    for panel in panels:
        here = axes[panel.line, panel.column]
        if panel.column == 0:
            here.set_ylabel(METRICS[kind.metric].label)
        if (panel.line + 1, panel.column) not in axes:
            here.set_xlabel(kind.x_title(look))
            here.tick_params(axis="x", labelbottom=True)


def _entries(kind: Kind, axes: dict[tuple[int, int], Axes], measured: DataFrame, cells: DataFrame, look: Look) -> dict[str, Artist]:
    entries: dict[str, Artist] = {}
    if kind.keyed():
        hues, drawn = look.ordered(kind.hue, cells[kind.hue]), set(measured[kind.hue])
        colors = look.colors(kind.hue, hues)
        for hue in hues:
            entries[look.phrase(kind.hue, hue) + ("" if hue in drawn else f" ({NO_RUNS})")] = kind.handle(hue, look, colors[hue])
    for panel in axes.values():
        entries |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    return entries


def _fit_legend(figure: Figure, entries: dict[str, Artist]) -> None:
    for columns in range(len(entries), 0, -1):
        even = ceil(len(entries) / ceil(len(entries) / columns))
        legend = figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=even, handlelength=2.2)
        if columns == 1 or legend.get_window_extent().width < figure.bbox.width * 0.98:
            return
        legend.remove()
