"""What the page shows of a table: the laid-out numbers, each with a link to its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cohort.results.comparison import Comparison
from cohort.results.names import Names
from cohort.results.report.render import merged, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.tables.layout import Entry
from cohort.results.tables.sizes import lay_out_sizes, needs_no_runs, read_sizes
from cohort.results.tables.tabulate import lay_out_table

SEPARATOR, EQUALS = " · ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"


Labels = dict[str, list[str]]
Cell = tuple[Entry, str]
"""A table's entry, with the page anchor of its runs."""


@dataclass(frozen=True)
class Table:
    """A table: the head of its rows, its columns with the label values that they stand for, its
    lines (a name, the cells, and the label values that these share), and the sentence on what is
    the same everywhere."""

    head: str
    columns: list[tuple[str, Labels]]
    lines: list[tuple[str, list[Cell], Labels]]
    everywhere: str
    notes: list[str]


def shown_table(item: Mapping[str, Any], runs: StudyRuns) -> Table:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    file = with_suffix(item["files"], ".json")
    if needs_no_runs(item):
        layout = lay_out_sizes(read_sizes(file), Names.of(item["look"]))
    else:
        layout = lay_out_table(item, Comparison.read(file))
    lines = []
    for words, entries in layout.lines:
        cells = [(entry, _anchor(entry, item["experiment"], runs)) for entry in entries]
        lines.append((SEPARATOR.join(words).replace(" = ", EQUALS), cells, _shared(entries)))
    by_column = zip(*(entries for _, entries in layout.lines), strict=True)
    columns = list(zip(layout.columns, map(_shared, by_column), strict=True))
    return Table(SEPARATOR.join(layout.heads), columns, lines, layout.everywhere, layout.notes)


def _anchor(entry: Entry, experiment: str, runs: StudyRuns) -> str:
    return runs.anchor(experiment, entry.labels) if entry.labels and entry.has_runs else ""


def _shared(entries: Iterable[Entry]) -> Labels:
    """The label values that all entries with labels have in common."""
    labels = merged(entry.labels for entry in entries if entry.labels)
    return {name: values for name, values in labels.items() if len(values) == 1}
