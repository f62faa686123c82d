"""Draws one figure: a grid of panels, one legend above them, and a note on the runs below. The same
numbers always give the same bytes."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import ceil, prod
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from pandas import DataFrame

from cohort.core import files, sealed_json
from cohort.core.text import counted
from cohort.results import series, statistics
from cohort.results.comparison import compare
from cohort.results.figures import KINDS, Kind, theme
from cohort.results.figures.theme import LETTER, Style
from cohort.results.names import listed
from cohort.results.paper import PaperMatch, doubts
from cohort.results.series import FULL, NO_RUNS

NO_DATES = {".png": {"Software": None}, ".pdf": {"CreationDate": None}}
MAX_COLUMNS = 4  # of a grid that may wrap
MAX_PARTS = 3  # side by side, of a single panel each
Part = tuple[Kind, DataFrame, Sequence[PaperMatch]]
"""One metric of a figure: its kind, the metrics of its cells, and the paper's values for it."""
Panels = dict[tuple[int, int], dict[str, str]]
"""The label values that the runs of each panel share, by the panel's row and column."""
Grid = dict[tuple[int, int], Axes]


def draw(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Draw the figure of `spec` to each output; its ending sets the format: .png, .pdf, -narrow.png
    with one panel in a row, or .json for the comparison of its runs."""
    with mpl.rc_context():
        theme.apply_theme()
        figures = [make_figure(spec, metrics_file, narrow=narrow) for narrow in (False, True)]
        for output in map(Path, outputs):
            if output.suffix == ".json":
                measures = KINDS[spec["kind"]].from_spec(spec).measures()
                comparison = compare(measures, spec, metrics_file)
                sealed_json.write_sealed(output, asdict(comparison), sync=False)
                continue
            metadata = NO_DATES[output.suffix] | {"Title": spec.get("title", "")}
            with files.atomic_write(output) as temporary:
                figures[output.stem.endswith("-narrow")].savefig(temporary, metadata=metadata)


def make_figure(
    spec: Mapping[str, Any], metrics_file: str | Path, *, narrow: bool = False
) -> Figure:
    """Draw a figure with matplotlib's current settings; a `narrow` one has one panel in a row."""
    parts: list[Part] = []
    scale = spec.get("scale", FULL)
    for kind in KINDS[spec["kind"]].from_spec(spec).by_metric():
        metrics = series.read_metric(metrics_file, *kind.metrics())
        metrics = series.runs_without(metrics, statistics.values_left_out(kind.without))
        matches: list[PaperMatch] = []
        if spec.get("paper"):
            measure, cells = kind.measures()[0], series.cells_of(metrics).to_dict("records")
            labels, rounds = series.label_columns(metrics), metrics["round"].dropna()
            matches = measure.matches(spec["paper_values"], cells, labels)
            if measure.curves and scale != FULL and len(rounds):  # then our curves are short
                for values in (match.values for match in matches):
                    values[:] = [value for value in values if (value.round or 0) <= rounds.max()]
        parts.append((kind, metrics, matches))
    remarks = [f"scale {scale}: a cheaper version of the study"] if scale != FULL else []
    for sentence in series.restored_notes([metrics_file], by_others=True):
        remarks.append(f"{sentence[0].lower()}{sentence[1:-1]}")
    return _sheet(parts, Style.of(spec["style"]), remarks, narrow=narrow)


def _sheet(parts: Sequence[Part], style: Style, remarks: Sequence[str], *, narrow: bool) -> Figure:
    """Draw a whole figure, with a note to which `remarks` are added."""
    kinds, (kind, metrics, _) = [kind for kind, *_ in parts], parts[0]
    cells, labels = series.cells_of(metrics), series.label_columns(metrics)
    by_panel = [rows for _, rows in cells.groupby([*kind.panels()])] if kind.panels() else []
    enough = pd.concat([rows for rows in by_panel if _has_enough(kind, rows)] or [cells])
    begun = runs if len(runs := enough[enough["status"] != "missing"]) else cells
    style = replace(style, shown_values={name: style.ordered(name, begun[name]) for name in labels})
    panels, starts = place_parts(arrange(kind, begun, style), len(parts))
    if narrow:
        panels = {(row, 0): labels for row, labels in enumerate(panels.values())}
        starts = [(part * len(panels), 0) for part in range(len(parts))]
    hues = len(style.shown_values.get(kind.hue, [""]))
    share_x = len({kind.x_title(style) for kind in kinds}) == 1
    figure, grids = make_grids(panels, starts, kind, hues, share_x=share_x)
    measured = [kind.measure(metrics) for kind, metrics, _ in parts]
    for part, rows, grid in zip(parts, measured, grids, strict=True):
        first = next(iter(grid.values()))
        titles = _titles(panels, style, theme.grid_cell(first)[0])
        for (position, panel), title in zip(panels.items(), titles, strict=True):
            _draw_panel(part, grid[position], panel, rows, cells, style)
            grid[position].set_title(title)
        if not len(rows):  # the panels of a part share their axes, perhaps with other parts'
            first.set(yticks=[])
            first.set(**{} if share_x and any(map(len, measured)) else {"xticks": []})
    for (part_kind, *_), rows, grid in zip(parts, measured, grids, strict=True):
        for position, panel in panels.items():
            part_kind.annotate(grid[position], select(rows, panel), style)
    _name_axes(kinds, grids, style)
    counts = series.count_runs(pd.concat([select(cells, panel) for panel in panels.values()]))
    notes = [series.runs_phrase(counts) if counts["planned"] else NO_RUNS]
    if note := kind.runs_note(measured[0]) if len(measured[0]) else "":
        is_complete = counts["done"] == counts["planned"]
        notes = [note] if is_complete else [*notes, note.removeprefix("n = ")]
    gaps = _gaps(kind, cells, len(panels), style)
    matches = [match for *_, paper in parts for match in paper if style.shows(match.labels)]
    if reasons := doubts(value.doubtful for match in matches for value in match.values):
        remarks = [*remarks, f"some of the paper's values are doubtful: {reasons}"]
    explained = kind.remarks(measured[0], style) if len(measured[0]) else []
    text = "; ".join([*notes, *explained, *gaps, *remarks])
    width = int(figure.get_figwidth() / LETTER / 0.92)
    figure.supxlabel(fill(text, width), x=0.99, ha="right", **theme.NOTE)
    legend_height = _add_legend(figure, _entries(kind, grids, style))
    figure.set_figheight(figure.get_figheight() + legend_height)
    return figure


def _gaps(kind: Kind, cells: DataFrame, panels: int, style: Style) -> list[str]:
    """Texts for the note: which planned values and how many planned panels are not drawn yet."""
    names, begun = [], cells[cells["status"] != "missing"]
    begun = begun if len(begun) else cells
    for label in (name for name in kind.labels() if name not in (*kind.panels(), "seed")):
        without = style.ordered(label, set(cells[label]) - set(begun[label]))
        names += [style.phrase(label, value) for value in without]
    planned = cells.groupby(list(kind.panels())).ngroups if kind.panels() else 1
    empty = f"{counted(planned - panels, 'panel')} without enough runs left out"
    texts = [f"no runs yet: {listed(names)}"] if names else []
    return [*texts, *([empty] if planned > panels else [])]


def _has_enough(kind: Kind, cells: DataFrame) -> bool:
    return kind.has_enough({"labels": row, "status": row["status"]} for _, row in cells.iterrows())


def arrange(kind: Kind, cells: DataFrame, style: Style) -> Panels:
    """Make a panel for each value of `rows` and `columns` that has cells, and place it: in rows if
    these are full, else wrapped evenly."""
    labels = kind.panels()
    if not labels or cells.empty:
        return {(0, 0): {}}
    existing = set(zip(*(cells[label] for label in labels), strict=True))
    keys = itertools.product(*(style.shown_values[label] for label in labels))
    panels = [dict(zip(labels, key, strict=True)) for key in keys if key in existing]
    row = prod(len(style.shown_values[label]) for label in labels[1:])
    is_full = kind.rows and len(panels) == row * len(style.shown_values[labels[0]])
    columns = row if is_full else _even(len(panels))
    return {divmod(i, columns): panel for i, panel in enumerate(panels)}


def place_parts(panels: Panels, parts: int) -> tuple[Panels, list[tuple[int, int]]]:
    """The panels of a part (metric), and the row and column at which each part begins: side by side
    where they fit, else one below the other with its panels in a row; single panels wrap."""
    rows, columns = (1 + max(numbers) for numbers in zip(*panels, strict=True))
    if len(panels) == 1:
        return panels, [divmod(part, _even(parts, MAX_PARTS)) for part in range(parts)]
    if columns * parts <= MAX_COLUMNS:
        return panels, [(0, part * columns) for part in range(parts)]
    if parts > 1 and len(panels) <= MAX_COLUMNS:
        panels, rows = {(0, x): labels for x, labels in enumerate(panels.values())}, 1
    return panels, [(part * rows, 0) for part in range(parts)]


def make_grids(
    panels: Panels, starts: Sequence[tuple[int, int]], kind: Kind, hues: int, *, share_x: bool
) -> tuple[Figure, list[Grid]]:
    """Make an empty figure, and for each of its parts (metrics) a grid with all panels. All panels
    share their x axis, or else those of a part, which share their y axis as well."""
    parts = len(starts)
    down = 1 + max(row for row, _ in panels) + max(row for row, _ in starts)
    across = 1 + max(column for _, column in panels) + max(column for _, column in starts)
    width, height = kind.panel_size(max(theme.MIN_WIDTH, theme.PAGE_WIDTH / across), hues)
    figure = Figure(figsize=(width * across, height * down + theme.FRAME), layout="constrained")
    FigureCanvasAgg(figure)
    share_y = kind.shared_y if parts == 1 else False
    subplots = figure.subplots(down, across, sharex=share_x, sharey=share_y, squeeze=False)
    for axes in subplots.flat:
        axes.locator_params(axis="both", min_n_ticks=theme.MIN_TICKS)
    grids: list[Grid] = []
    for row, column in starts:
        grids.append({(y, x): subplots[row + y][column + x] for y, x in sorted(panels)})
    used = [axes for grid in grids for axes in grid.values()]
    for axes in subplots.flat:
        if axes not in used:
            axes.remove()
    for first, *others in (grid.values() for grid in grids if parts > 1):
        for axes in others:
            if kind.shared_y:
                axes.sharey(first)
            if not share_x:
                axes.sharex(first)
    return figure, grids


def _even(panels: int, maximum: int = MAX_COLUMNS) -> int:
    """The number of panels in a row if as few rows as possible are filled evenly."""
    return ceil(panels / ceil(panels / maximum))


def select(frame: DataFrame, labels: dict[str, str]) -> DataFrame:
    """The rows that belong to a panel."""
    for label, value in labels.items():
        frame = frame[frame[label] == value]
    return frame


def _draw_panel(
    part: Part, axes: Axes, labels: dict[str, str], rows: DataFrame, cells: DataFrame, style: Style
) -> None:
    """Draw the measured rows and the paper's values of a panel, or say why it is empty."""
    kind, _, paper = part
    if len(panel_rows := select(rows, labels)):
        kind.draw(axes, panel_rows, style)
        paper = [line for line in paper if line.values and labels.items() <= line.labels.items()]
        paper = [line for line in paper if style.shows(line.labels)]
        if paper:
            kind.draw_paper(axes, paper, style)
        axes.set(xlabel="", ylabel="")  # seaborn sets the names of columns
    else:
        has_runs = (select(cells, labels)["status"] != "missing").any()
        theme.show_message(axes, "no values yet" if has_runs else NO_RUNS)
    if kind.limits:
        axes.set_ylim(*kind.limits)


def _titles(panels: Panels, style: Style, width: float) -> list[str]:
    parts = []
    for labels in panels.values():
        parts.append([style.phrase(*label) for label in reversed(labels.items())])
    one_line = [", ".join(words) for words in parts]
    fits = max(map(len, one_line)) * LETTER < 0.92 * width
    return one_line if fits else [",\n".join(words) for words in parts]


def _name_axes(kinds: list[Kind], grids: list[Grid], style: Style) -> None:
    """Title the axes; seaborn may have hidden the titles of axes without tick labels."""
    for kind, grid in zip(kinds, grids, strict=True):
        for (row, column), axes in grid.items():
            first = grid[row, min(other for at, other in grid if at == row)]
            axes.tick_params(axis="y", labelleft=axes is first or not kind.shared_y)
            if axes is first:
                room = int((theme.grid_cell(axes)[1] - theme.ENDS / 2) / LETTER)
                title = fill(kind.y_title().replace(" (", "\N{NO-BREAK SPACE}("), room)
                axes.set_ylabel(title.replace("\N{NO-BREAK SPACE}", " "), visible=True)
            is_last = (row + 1, column) not in grid
            axes.tick_params(axis="x", labelbottom=is_last or not kind.rows)
            if is_last:
                axes.set_xlabel(kind.x_title(style), visible=True)


def _entries(kind: Kind, grids: list[Grid], style: Style) -> dict[str, Any]:
    """The legend's handles by their text: the hues, then everything labeled in a panel."""
    entries: dict[str, Any] = {}
    if kind.has_legend:
        for hue, color in kind.colors(style).items():
            entries[style.phrase(kind.hue, hue)] = kind.handle(hue, style, color)
    for axes in (axes for grid in grids for axes in grid.values()):
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    return {} if kind.has_legend and len(entries) == 1 else entries  # a lone hue needs no name


def _add_legend(figure: Figure, entries: dict[str, Any]) -> float:
    """Put a legend above the panels in as few rows as fit, and return its height in inches."""
    for columns in range(len(entries), 0, -1):
        legend = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=_even(len(entries), columns),
            handlelength=2.8,
        )
        box = legend.get_window_extent()
        if columns == 1 or box.width < figure.bbox.width * 0.98:
            return float(box.height / figure.dpi)
        legend.remove()
    return 0.0
