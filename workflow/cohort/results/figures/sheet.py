"""Lays out a figure: a grid of panels, one legend above them, and a note on the runs below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame

from cohort.core.text import counted
from cohort.results.figures.grid import (
    Grid,
    Panel,
    arrange,
    begun_panels,
    make_grids,
    rearranged_panels,
)
from cohort.results.figures.kind import Kind
from cohort.results.figures.style import ENDS, LABEL_SIZE, LETTER, NOTE, Style, grid_cell, say
from cohort.results.names import listed, word
from cohort.results.paper_match import PaperMatch
from cohort.results.series import NO_RUNS, cells_of, count_runs


@dataclass(frozen=True)
class Part:
    """One metric of a figure: its kind, its metrics, and the paper's values for it."""

    kind: Kind
    metrics: DataFrame
    paper: Sequence[PaperMatch] = ()


def sheet(
    parts: Sequence[Part], style: Style, remarks: Sequence[str] = (), *, is_narrow: bool = False
) -> Figure:
    """Draw a whole figure, its parts side by side, with a note to which `remarks` are added. The
    panels of a narrow one lie one below the other."""
    kind, cells = parts[0].kind, cells_of(parts[0].metrics)
    planned = arrange(kind, cells, style)
    begun = begun_panels(planned, cells)
    panels = rearranged_panels(begun, len(parts), is_narrow=is_narrow)
    measured = [part.kind.measure(part.metrics) for part in parts]
    same_x = len({part.kind.x_title(style) for part in parts}) == 1
    hues = cells[kind.hue].nunique() if kind.hue in cells else 1
    figure, grids = make_grids(
        panels, len(parts), kind, hues=hues, share_x=same_x, is_narrow=is_narrow
    )
    for part, rows, grid in zip(parts, measured, grids, strict=True):
        first = next(iter(grid.values()))
        titles = _titles(panels, style, grid_cell(first)[0])
        for panel, title in zip(panels, titles, strict=True):
            axes = grid[panel.row, panel.column]
            _draw_panel(part, axes, panel, rows, cells, style)
            axes.set_title(title)
        if not len(rows):
            first.set(xticks=[], yticks=[])  # the panels share their axes
    _name_axes([part.kind for part in parts], figure, grids, style)
    drawn = pd.concat([panel.select(cells) for panel in begun])
    empty = len(planned) - len(begun)
    left_out = [f"{counted(empty, 'panel')} without runs left out"] if empty else []
    text = "; ".join([note(kind, measured[0], drawn, style), *left_out, *remarks])
    width = int(figure.get_figwidth() / LETTER / 0.92)
    figure.supxlabel(fill(text, width), x=0.99, ha="right", **NOTE)
    legend_height = _add_legend(figure, _entries(kind, grids, measured[0], cells, style))
    figure.set_figheight(figure.get_figheight() + legend_height)
    return figure


def note(kind: Kind, measured: DataFrame, cells: DataFrame, style: Style) -> str:
    """Text below the figure: how many runs it shows, what their spread is, and what the marks of
    incomplete ones mean."""
    runs = count_runs(cells)
    parts = [runs.phrase if runs.planned else NO_RUNS]
    if runs.done == runs.planned and len(measured):
        parts = [kind.count(measured)]
    if kind.averaged():
        labels = listed([word(label) for label in kind.averaged()])
        parts.append(f"runs that differ in {labels} are averaged")
    return "; ".join([*parts, *kind.deviations(measured, cells, style), *kind.remarks(measured)])


def _draw_panel(
    part: Part, axes: Axes, panel: Panel, measured: DataFrame, cells: DataFrame, style: Style
) -> None:
    rows = panel.select(measured)
    if len(rows):
        part.kind.draw(axes, rows, cells, style)
        if matches := panel.matches(part.paper):
            part.kind.draw_paper(axes, matches, cells, style)
        axes.set(xlabel="", ylabel="")  # seaborn sets the names of columns
    else:
        say(axes, _why_empty(panel.select(cells)))
    if part.kind.limits:
        axes.set_ylim(*part.kind.limits)


def _why_empty(planned: DataFrame) -> str:
    statuses = set(planned["status"])
    if statuses <= {"missing"}:
        return NO_RUNS
    return "diverged" if statuses == {"diverged"} else "no values yet"


def _titles(panels: list[Panel], style: Style, width: float) -> list[str]:
    parts = []
    for panel in panels:
        parts.append([style.phrase(*label) for label in reversed(panel.values.items())])
    one_line = [", ".join(words) for words in parts]
    fits = max(map(len, one_line)) * LETTER < 0.92 * width
    return one_line if fits else [",\n".join(words) for words in parts]


def _name_axes(kinds: list[Kind], figure: Figure, grids: list[Grid], style: Style) -> None:
    """Title the axes; seaborn may have hidden the titles of axes without tick labels."""
    rows = dict.fromkeys(row for row, _ in grids[0])
    has_shared_title = len(rows) > 1 and len(kinds) == 1
    if has_shared_title:
        figure.supylabel(kinds[0].y_title(), fontsize=LABEL_SIZE)
    for kind, grid in zip(kinds, grids, strict=True):
        for (row, column), axes in grid.items():
            first = grid[row, min(other for at, other in grid if at == row)]
            is_first = axes is first
            is_named = is_first or not (kind.shared_y or _y_names(axes) == _y_names(first))
            axes.tick_params(axis="y", labelleft=is_named)
            if is_first and not has_shared_title:
                room = int((grid_cell(axes)[1] - ENDS / 2) / LETTER)
                title = fill(kind.y_title().replace(" (", "\N{NO-BREAK SPACE}("), room)
                axes.set_ylabel(title.replace("\N{NO-BREAK SPACE}", " "), visible=True)
            is_last = (row + 1, column) not in grid
            is_named = is_last or not (kind.rows and kind.shared_x)
            axes.tick_params(axis="x", labelbottom=is_named)
            if is_last:
                axes.set_xlabel(kind.x_title(style), visible=True)


def _y_names(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def _entries(
    kind: Kind, grids: list[Grid], measured: DataFrame, cells: DataFrame, style: Style
) -> dict[str, Artist]:
    """The legend's handles by their text: the hues, then everything labeled in a panel."""
    entries: dict[str, Artist] = {}
    if kind.has_legend:
        drawn = set(measured[kind.hue])
        for hue, color in kind.colors(cells, style).items():
            suffix = f" ({NO_RUNS})" if drawn and hue not in drawn else ""
            entries[style.phrase(kind.hue, hue) + suffix] = kind.handle(hue, style, color)
    for axes in (axes for grid in grids for axes in grid.values()):
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    return entries


def _add_legend(figure: Figure, entries: dict[str, Artist]) -> float:
    """Put a legend above the panels in as few rows as fit, and return its height in inches."""
    for columns in range(len(entries), 0, -1):
        even = ceil(len(entries) / ceil(len(entries) / columns))
        legend = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=even,
            handlelength=2.8,
        )
        box = legend.get_window_extent()
        if columns == 1 or box.width < figure.bbox.width * 0.98:
            return float(box.height / figure.dpi)
        legend.remove()
    return 0.0
