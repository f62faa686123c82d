"""The sheet that a kind of figure paints on: a grid of panels, one legend above them, and below a note on the runs behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Literal

from cohort.figures import look as sizes
from cohort.figures.kind import Kind
from cohort.figures.look import LETTER, NOTE, STYLE, Look, panel_width
from cohort.metrics.names import listed, word
from cohort.metrics.paper_match import Beside
from cohort.metrics.summary import cells_of, runs_behind

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame

NO_RUNS = "no runs yet"


Grid = dict[tuple[int, int], "Axes"]
"""The axes of a part by line and column."""


@dataclass(frozen=True)
class Part:
    """One metric of a figure: how it is drawn, its numbers, and what the paper says of them."""

    kind: Kind
    metrics: DataFrame
    beside: Sequence[Beside] = ()


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

    def beside(self, everything: Iterable[Beside]) -> list[Beside]:
        """What the paper says of its runs."""
        return [
            one
            for one in everything
            if one.values
            and all(one.labels[label] == value for label, value in self.values.items())
        ]


def sheet(parts: Sequence[Part], look: Look, remarks: Sequence[str] = ()) -> Figure:
    """The whole figure, ready to be saved: its parts side by side, and further `remarks` in the note."""
    kind, cells = parts[0].kind, cells_of(parts[0].metrics)
    panels, measured = (
        arrange(kind, cells, look),
        [part.kind.measure(part.metrics) for part in parts],
    )
    figure, grid = _grid(panels, len(parts), kind.shared_y)
    for part, rows, axes in zip(parts, measured, grid, strict=True):
        for panel, title in zip(
            panels, _titles(panels, look, panel_width(axes[0, 0])), strict=True
        ):
            here = axes[panel.line, panel.column]
            _fill(part.kind, here, panel.of(rows), panel.of(cells), cells, look)
            if len(panel.of(rows)) and (beside := panel.beside(part.beside)):
                part.kind.paint_paper(here, beside, cells, look)
            here.set_title(title)
        if not len(rows):
            axes[0, 0].set(xticks=[], yticks=[])  # the panels share their axes
    _name_axes([part.kind for part in parts], figure, grid, look)
    text = "; ".join([note(kind, measured[0], cells), *remarks])
    figure.supxlabel(
        fill(text, int(figure.get_figwidth() / LETTER / 0.85)), x=0.99, ha="right", **NOTE
    )
    figure.set_figheight(
        figure.get_figheight() + _legend(figure, _entries(kind, grid, measured[0], cells, look))
    )
    return figure


def arrange(kind: Kind, cells: DataFrame, look: Look) -> list[Panel]:
    """Where each panel lies: columns side by side, rows one below the other; only one of them given, the panels wrap."""
    lines = look.ordered(kind.rows, cells[kind.rows]) if kind.rows else []
    columns = look.ordered(kind.columns, cells[kind.columns]) if kind.columns else []
    if lines and columns and kind.rows and kind.columns:
        return [
            Panel(y, x, {kind.rows: line, kind.columns: column})
            for y, line in enumerate(lines)
            for x, column in enumerate(columns)
        ]
    if kind.rows and lines:
        return [Panel(y, 0, {kind.rows: line}) for y, line in enumerate(lines)]
    if kind.columns and columns:
        width = ceil(len(columns) / ceil(len(columns) / sizes.MOST_COLUMNS))
        return [
            Panel(*divmod(place, width), {kind.columns: column})
            for place, column in enumerate(columns)
        ]
    return [Panel(0, 0, {})]


def note(kind: Kind, measured: DataFrame, cells: DataFrame) -> str:
    """How many runs stand behind the figure, and what its marks mean when some of them went wrong or are not there."""
    runs = runs_behind(cells)
    parts = [runs.phrase if runs.planned else NO_RUNS]
    if runs.done == runs.planned and len(measured):
        seeds = measured.groupby(list(kind.shown()))["digest"].nunique()
        fewest, most = seeds.min(), seeds.max()
        count = str(most) if fewest == most else f"{fewest} to {most}"
        parts = [
            f"n = {count} {'run' if kind.averaged() else 'seed'}{'' if most == 1 else 's'} per {kind.mark()}"
        ]
    if kind.averaged():
        parts.append(
            f"runs that differ in {listed([word(label) for label in kind.averaged()])} are averaged"
        )
    return "; ".join([*parts, *kind.remarks(set(measured["status"]))])


def _grid(
    panels: list[Panel], parts: int, shared_y: bool | Literal["row"]
) -> tuple[Figure, list[Grid]]:
    """An empty figure, and the axes of each part's panels. All panels share their x axis, those of a part their y axis."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines, columns = (
        1 + max(panel.line for panel in panels),
        1 + max(panel.column for panel in panels),
    )
    width = min(sizes.WIDEST, max(sizes.NARROWEST, sizes.PAGE_WIDTH / (columns * parts)))
    height = min(sizes.TALLEST, max(sizes.SHORTEST, width * sizes.HEIGHT))
    figure = Figure(
        figsize=(width * columns * parts, height * lines + sizes.FRAME), layout="constrained"
    )
    FigureCanvasAgg(figure)
    places = figure.subplots(
        lines, columns * parts, sharex=True, sharey=shared_y if parts == 1 else False, squeeze=False
    )
    grid = [
        {
            (panel.line, panel.column): places[panel.line][part * columns + panel.column]
            for panel in panels
        }
        for part in range(parts)
    ]
    used = [axes for part in grid for axes in part.values()]
    for axes in places.flat:
        if axes not in used:
            axes.remove()
    for part in grid if parts > 1 else []:
        first = part[0, 0]
        for (line, column), axes in part.items():
            if (line, column) != (0, 0):
                axes.sharey(first)
            axes.tick_params(labelleft=column == 0)
    return figure, grid


def _fill(
    kind: Kind, axes: Axes, measured: DataFrame, planned: DataFrame, cells: DataFrame, look: Look
) -> None:
    if len(measured):
        kind.paint(axes, measured, cells, look)
    else:
        axes.text(
            0.5,
            0.5,
            _reason(planned, cells),
            transform=axes.transAxes,
            ha="center",
            va="center",
            color=NOTE["color"],
        )
        axes.grid(visible=False)
        axes.tick_params(length=0)
    if kind.limits:
        axes.set_ylim(*kind.limits)


def _reason(planned: DataFrame, cells: DataFrame) -> str:
    statuses = set(planned["status"])
    if not statuses:
        return "not planned" if len(cells) else NO_RUNS
    return (
        NO_RUNS
        if statuses == {"missing"}
        else "diverged"
        if statuses == {"diverged"}
        else "no values yet"
    )


def _titles(panels: list[Panel], look: Look, width: float) -> list[str]:
    parts = [
        [look.phrase(label, value) for label, value in reversed(panel.values.items())]
        for panel in panels
    ]
    one_line = [", ".join(words) for words in parts]
    fits = max(map(len, one_line)) * LETTER < 0.92 * width
    return one_line if fits else [",\n".join(words) for words in parts]


def _name_axes(kinds: list[Kind], figure: Figure, grid: list[Grid], look: Look) -> None:
    last = max(line for line, _ in grid[0])
    if last and len(kinds) == 1:
        figure.supylabel(kinds[0].y_title(), fontsize=STYLE["axes.labelsize"])
    else:
        for kind, axes in zip(kinds, grid, strict=True):
            for line in range(last + 1):
                axes[line, 0].set_ylabel(kind.y_title())
    for kind, axes in zip(kinds, grid, strict=True):
        for (line, column), panel in axes.items():
            if (line + 1, column) not in axes:
                panel.set_xlabel(kind.x_title(look))
                panel.tick_params(axis="x", labelbottom=True)


def _entries(
    kind: Kind, grid: list[Grid], measured: DataFrame, cells: DataFrame, look: Look
) -> dict[str, Artist]:
    entries: dict[str, Artist] = {}
    if kind.keyed():
        hues, drawn = look.ordered(kind.hue, cells[kind.hue]), set(measured[kind.hue])
        colors = look.colors(kind.hue, hues)
        for hue in hues:
            suffix = f" ({NO_RUNS})" if drawn and hue not in drawn else ""
            entries[look.phrase(kind.hue, hue) + suffix] = kind.handle(hue, look, colors[hue])
    for panel in (panel for axes in grid for panel in axes.values()):
        entries |= {
            label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
    return entries


def _legend(figure: Figure, entries: dict[str, Artist]) -> float:
    """Put the legend above the panels, in as few lines as fit the width, and say how many inches it takes."""
    for columns in range(len(entries), 0, -1):
        even = ceil(len(entries) / ceil(len(entries) / columns))
        legend = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=even,
            handlelength=2.2,
        )
        box = legend.get_window_extent()
        if columns == 1 or box.width < figure.bbox.width * 0.98:
            return float(box.height / figure.dpi)
        legend.remove()
    return 0.0
