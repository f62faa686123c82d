"""What the page shows of a table: the laid-out numbers, each with a link to its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cohort.results.comparison import Comparison
from cohort.results.names import Names
from cohort.results.report.render import merged, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.tables.layout import Entry, Layout
from cohort.results.tables.sizes import lay_out_sizes, needs_no_runs, read_sizes
from cohort.results.tables.tabulate import lay_out_table

SEPARATOR, EQUALS = " · ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Cell:
    """A table's entry, with the page anchor of its runs."""

    entry: Entry
    anchor: str


@dataclass(frozen=True)
class Line:
    """A table's row: its name, its cells, and the label values that all of them share."""

    name: str
    cells: list[Cell]
    labels: dict[str, list[str]]


@dataclass(frozen=True)
class Table:
    """A table: heads of its rows and columns, with the label values that a column stands for, and
    the sentence on what is the same everywhere."""

    head: str
    columns: list[tuple[str, dict[str, list[str]]]]
    lines: list[Line]
    everywhere: str
    notes: list[str]
    labels: dict[str, list[str]]


def shown_table(item: Mapping[str, Any], runs: StudyRuns) -> Table:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    file = with_suffix(item["files"], ".json")
    if needs_no_runs(item):
        layout = lay_out_sizes(read_sizes(file), Names.of(item["look"]))
    else:
        layout = lay_out_table(item, Comparison.read(file))
    return table_of(layout, item["experiment"], runs)


def table_of(layout: Layout, experiment: str, runs: StudyRuns) -> Table:
    """A laid-out table with links."""
    by_column = list(zip(*(entries for _, entries in layout.lines), strict=True))
    lines = []
    for words, entries in layout.lines:
        cells = [_cell(entry, experiment, runs) for entry in entries]
        lines.append(Line(SEPARATOR.join(words).replace(" = ", EQUALS), cells, _shared(entries)))
    return Table(
        head=SEPARATOR.join(layout.heads),
        columns=[
            (title, _shared(entries))
            for title, entries in zip(layout.columns, by_column, strict=True)
        ],
        lines=lines,
        everywhere=layout.everywhere,
        notes=layout.notes,
        labels=merged(entry.labels for entries in by_column for entry in entries),
    )


def _cell(entry: Entry, experiment: str, runs: StudyRuns) -> Cell:
    linked = entry.labels and entry.has_runs
    return Cell(entry, runs.anchor(experiment, entry.labels) if linked else "")


def _shared(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """The label values that all entries with labels have in common."""
    labels = merged(entry.labels for entry in entries if entry.labels)
    return {name: values for name, values in labels.items() if len(values) == 1}
