"""The figures and tables of a page, under the numbers that their paper gives them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort.results.comparison import Comparison
from cohort.results.figures import KINDS
from cohort.results.names import METRICS, Names
from cohort.results.report.render import data_url, links, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.tables.tabulate import lay_out_table

Spec = Mapping[str, Any]
Item = dict[str, Any]
"""What a template shows of a figure or table: a picture (`image`) or a `table`, or neither if there
is nothing to show yet."""

FIGURE = re.compile(r"fig0*(\d+)")
SEPARATOR, EQUALS = " · ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"


def sections(spec: Spec, runs: StudyRuns, folder: Path) -> list[dict[str, Any]]:
    """The sections of a page that are not empty: tables and figures; URLs are relative to a folder.
    The notes of a section are those that several of its tables share."""
    tables = []
    for item in spec["tables"]:
        table = shown_table(item)
        tables.append(_item(item, spec, runs, folder, table=table if table["columns"] else None))
    figures = [_figure(item, spec, runs, folder) for item in spec["figures"]]
    counts = Counter(note for it in tables if it["table"] for note in it["table"]["notes"])
    notes = [note for note, count in counts.items() if count > 1]
    shown = [
        {"id": "tables", "title": "Tables", "noun": "table", "entries": tables, "notes": notes},
        {"id": "figures", "title": "Figures", "noun": "figure", "entries": figures, "notes": []},
    ]
    return [section for section in shown if section["entries"]]


def key_figure(spec: Spec, shown: Sequence[Mapping[str, Any]]) -> Item | None:
    """The picture that opens the page: of the figure that the study names, or else of the first
    one; None if no figure has a picture."""
    figures = [item for section in shown for item in section["entries"] if item["image"]]
    chosen = [item for item in figures if item["id"] == spec["key_figure"]]
    return next(iter([*chosen, *figures]), None)


def _figure(item: Spec, spec: Spec, runs: StudyRuns, folder: Path) -> Item:
    shown = _item(item, spec, runs, folder)
    counted = shown["coverage"].runs
    if counted.missing == counted.planned:
        return shown
    comparison = Comparison.read(with_suffix(item["files"], ".json"))
    return shown | {
        "image": data_url(with_suffix(item["files"], ".png")),
        "seen": alternative_text(item, comparison),
    }


def alternative_text(item: Spec, comparison: Comparison) -> str:
    """A picture's alternative text: its title and what the comparison says, or else the mean of
    each value of its hue."""
    kind, names = KINDS[item["kind"]].from_spec(item), Names.of(item["look"])
    metric, texts = METRICS[kind.metric], [str(item["title"]).rstrip("."), *comparison.description]
    values: defaultdict[str, list[float]] = defaultdict(list)
    for result in comparison.results:
        if result.metric == kind.metric and kind.hue in result.labels:
            values[result.labels[kind.hue]] += result.values.values()
    means = [
        f"{names.value(kind.hue, value)} {metric.scale * sum(runs) / len(runs):.{metric.digits}f}"
        for value, runs in values.items()
        if runs
    ]
    if means and not comparison.description:
        texts.append(f"Means of {metric.label}: {'; '.join(means)}")
    return ". ".join(texts) + "."


def _item(item: Spec, spec: Spec, runs: StudyRuns, folder: Path, **fields: Any) -> Item:
    """What figures and tables share, and these fields."""
    figure = FIGURE.fullmatch(item["name"]) if spec["source"] else None
    number = f"Fig. {figure[1]}: " if figure else ""  # fig05 of a paper is its Fig. 5
    return {
        "id": item["name"],
        "heading": f"{number}{item['title']}",
        "caption": item["caption"],
        "command": item["command"],
        "experiment": item["experiment"],
        "links": links(item["files"], folder),
        "coverage": runs.coverage(item["experiment"]),
        "image": "",
        "table": None,
        **fields,
    }


def shown_table(item: Spec) -> dict[str, Any]:
    """Read an item's table from the JSON file that `tabulate` writes; lay it out for the page."""
    layout = lay_out_table(item, Comparison.read(with_suffix(item["files"], ".json")))
    return {
        "head": SEPARATOR.join(layout.heads),
        "columns": layout.columns,
        "lines": [
            (SEPARATOR.join(words).replace(" = ", EQUALS), entries)
            for words, entries in layout.lines
        ],
        "everywhere": layout.everywhere,
        "notes": layout.notes,
    }
