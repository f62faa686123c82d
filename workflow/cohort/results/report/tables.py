"""What the page shows of a table: the laid-out numbers, each with a link to its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cohort.results.comparison import NO_PAPER, NO_RESULT, Comparison
from cohort.results.names import Names
from cohort.results.report.render import merged, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.series import NO_VALUE
from cohort.results.tables.layout import NO_RESULT_YET, Entry, Layout
from cohort.results.tables.sizes import lay_out_sizes, needs_no_runs, read_sizes
from cohort.results.tables.tabulate import lay_out_table

EMPTY = ("", NO_VALUE, NO_RESULT_YET, NO_RESULT, NO_PAPER)
SEPARATOR = " · "
WORDS = ("agrees", "differs", "cannot tell")


@dataclass(frozen=True)
class Cell:
    """A table's entry, with the page anchor of its runs."""

    entry: Entry
    anchor: str

    @property
    def is_empty(self) -> bool:
        """Whether the cell has neither a result of ours nor the paper's value."""
        return _is_empty(self.entry)

    @property
    def has_runs(self) -> bool:
        """Whether the cell has a result of our runs."""
        return any(piece.value not in EMPTY for piece in self.entry.pieces)

    @property
    def verdict(self) -> str:
        """The verdict on whether the paper agrees; empty without one."""
        return self.entry.verdict if self.entry.verdict in WORDS else ""


@dataclass(frozen=True)
class Line:
    """A table's row: its name, its cells, and the label values that all of them share."""

    name: str
    cells: list[Cell]
    labels: dict[str, list[str]]


@dataclass(frozen=True)
class Table:
    """A table as the page shows it: heads of its rows and columns (with the label values that a
    column stands for), and `constants`, what is the same in all rows."""

    head: str
    constants: str
    columns: list[tuple[str, dict[str, list[str]]]]
    lines: list[Line]
    notes: list[str]
    labels: dict[str, list[str]]


def shown_table(item: Mapping[str, Any], runs: StudyRuns) -> Table:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    file = with_suffix(item["files"], ".json")
    if needs_no_runs(item):
        layout = lay_out_sizes(read_sizes(file), Names.of(item["look"]))
    else:
        layout = lay_out_table(item, Comparison.read(file), wide=True)
    return table_of(layout, item["experiment"], runs)


def table_of(layout: Layout, experiment: str, runs: StudyRuns) -> Table:
    """Link a laid-out table's cells to their runs; leave out columns and rows without numbers."""
    by_column = list(zip(*(entries for _, entries in layout.lines), strict=True))
    numbered = [index for index, entries in enumerate(by_column) if _has_number(entries)]
    rows = [(words, entries) for words, entries in layout.lines if _has_number(entries)]
    left_out = len(layout.lines) - len(rows)
    notes = [f"Rows without any number are left out ({left_out})."] if left_out else []
    by_head = list(zip(*(words for words, _ in rows), strict=True))
    varied = [index for index, words in enumerate(by_head) if len(set(words)) > 1] or [0]
    constants = [
        f"{head} {words[0]}"
        for index, (head, words) in enumerate(zip(layout.heads, by_head, strict=False))
        if index not in varied
    ]
    lines = []
    for words, entries in rows:
        cells = [_cell(entries[index], experiment, runs) for index in numbered]
        lines.append(Line(_joined(words, varied), cells, _shared(entries)))
    return Table(
        head=_joined(layout.heads, varied) if layout.heads else "",
        constants=", ".join(constants),
        columns=[(layout.columns[index], _shared(by_column[index])) for index in numbered],
        lines=lines,
        notes=[*notes, *layout.notes],
        labels=merged(entry.labels for entries in by_column for entry in entries),
    )


def _joined(words: Sequence[str], indices: Sequence[int]) -> str:
    return SEPARATOR.join(words[index] for index in indices)


def _is_empty(entry: Entry) -> bool:
    return not (entry.paper or Cell(entry, "").has_runs)


def _has_number(entries: Sequence[Entry]) -> bool:
    return not all(map(_is_empty, entries))


def _cell(entry: Entry, experiment: str, runs: StudyRuns) -> Cell:
    cell = Cell(entry, "")
    if not entry.labels or not cell.has_runs:
        return cell
    return replace(cell, anchor=runs.anchor(experiment, entry.labels))


def _shared(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """The labels of which all entries have the same value, with this value."""
    labels = merged(entry.labels for entry in entries if entry.labels)
    return {name: values for name, values in labels.items() if len(values) == 1}
