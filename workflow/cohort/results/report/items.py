"""The figures and tables of a page, under the numbers that their paper gives them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cohort.results.comparison import Comparison
from cohort.results.figures import KINDS
from cohort.results.figures.across import NOTHING_IN_COMMON
from cohort.results.figures.alternative import alternative_text
from cohort.results.report.render import data_url, links, merged, with_suffix
from cohort.results.report.runs import Coverage, StudyRuns
from cohort.results.tables.layout import Entry
from cohort.results.tables.tabulate import lay_out_table

Spec = Mapping[str, Any]
FIGURE = re.compile(r"fig0*(\d+)")
TABLE = re.compile(r"(Table [IVX0-9]+)(?:: |$)(.*)")
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


@dataclass(frozen=True)
class Item:
    """A figure or table on a page: a picture with its text alternative (`seen`), or a laid-out
    table, or neither if there is nothing to show yet. `links` are pairs of a relative URL and a
    format's name, `narrow` is the picture for a phone."""

    id: str
    heading: str
    caption: str
    command: str
    links: list[tuple[str, str]]
    coverage: Coverage | None
    labels: Labels
    image: str = ""
    narrow: str = ""
    seen: str = ""
    table: Table | None = None
    is_across: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether there is a picture or table to show."""
        return bool(self.image or self.table)


@dataclass(frozen=True)
class Section:
    """The tables or the figures of a page, with the notes that several of them share."""

    id: str
    title: str
    noun: str
    items: list[Item]
    notes: list[str]


def sections(spec: Spec, runs: StudyRuns, folder: Path) -> list[Section]:
    """The sections of a page that are not empty: tables, figures, and figures across settings."""
    tables = [_table(item, spec, runs, folder) for item in spec["tables"]]
    counts = Counter(note for item in tables if item.table for note in item.table.notes)
    shared = [note for note, count in counts.items() if count > 1]
    figures = figures_of(spec, runs, folder)
    all_sections = [
        Section("tables", "Tables", "table", tables, shared),
        Section("figures", "Figures", "figure", [it for it in figures if not it.is_across], []),
        Section("across", "Across settings", "figure", [it for it in figures if it.is_across], []),
    ]
    return [section for section in all_sections if section.items]


def figures_of(spec: Spec, runs: StudyRuns, folder: Path) -> list[Item]:
    """Every figure of a study; the URLs of its files are relative to a folder."""
    return [_figure(item, spec, runs, folder) for item in spec["figures"]]


def key_figure(spec: Spec, shown: Sequence[Section]) -> Item | None:
    """The picture that opens the page: of the figure that the study names, or else of the first
    one; None if no figure has a picture."""
    figures = [item for section in shown for item in section.items if item.image]
    chosen = [item for item in figures if item.id == spec["key_figure"]]
    return next(iter([*chosen, *figures]), None)


def _heading(name: str, title: str, source: Mapping[str, str]) -> str:
    """The title of an item behind the number that its paper gives it: fig05 of a paper is its
    Fig. 5."""
    number = ""
    if table := TABLE.fullmatch(title):
        number, title = table[1], table[2][:1].upper() + table[2][1:]
    elif source and (figure := FIGURE.fullmatch(name)):
        number = f"Fig. {figure[1]}"
    return ": ".join(filter(None, (number, title)))


def _item(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> partial[Item]:
    """The fields that figures and tables share, as a constructor that takes the rest."""
    experiment = item["experiment"]
    return partial(
        Item,
        id=item["name"],
        heading=_heading(item["name"], str(item["title"]), spec["source"]),
        caption=item["caption"],
        command=item["command"],
        links=links(item["files"], folder),
        coverage=runs.coverage(experiment),
        labels=merged(cell["labels"] for cell in runs.experiments.get(experiment, [])),
    )


def _figure(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> Item:
    item_with = partial(_item(item, spec, runs, folder), is_across=KINDS[item["kind"]].is_across)
    counted = runs.coverage(item["experiment"]).runs
    if counted.missing == counted.planned:
        return item_with()
    comparison = Comparison.read(with_suffix(item["files"], ".json"))
    if set(comparison.description) == {NOTHING_IN_COMMON}:
        return item_with()
    return item_with(
        image=data_url(with_suffix(item["files"], ".png")),
        narrow=data_url(with_suffix(item["files"], ".narrow.png")),
        seen=alternative_text(item, comparison),
    )


def _table(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> Item:
    table = shown_table(item, runs)
    return _item(item, spec, runs, folder)(table=table if table.columns else None)


def shown_table(item: Spec, runs: StudyRuns) -> Table:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    layout = lay_out_table(item, Comparison.read(with_suffix(item["files"], ".json")))
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
