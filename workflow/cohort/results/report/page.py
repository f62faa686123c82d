"""Writes a study's page, one self-contained HTML file, and its card for the index.

The HTML is in `templates/`; this package gathers what the templates show.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cohort.core import own
from cohort.core.files import write_text
from cohort.results.comparison import Comparison
from cohort.results.figures import KINDS
from cohort.results.figures.alternative import alternative
from cohort.results.names import Names
from cohort.results.report.claims import Claims, read_claims
from cohort.results.report.render import FILTERS, data_url, links, merged, render, with_suffix
from cohort.results.report.runs import Cell, Coverage, StudyRuns
from cohort.results.report.tables import Table, shown_table
from cohort.results.series import GENERATED

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """A figure or a table: a picture with what is seen in it, or a laid-out table, or neither if
    there is nothing to show yet. `links` are pairs of a relative URL and a format's name."""

    id: str
    title: str
    caption: str
    command: str
    links: list[tuple[str, str]]
    coverage: Coverage | None
    labels: dict[str, list[str]]
    image: str = ""
    seen: str = ""
    table: Table | None = None
    is_across: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.image or self.table)


def write_page(spec: Spec, outputs: Sequence[str | Path]) -> None:
    """Write the page of a study to the first output, and its card as JSON to the second."""
    page, card_file = map(Path, outputs)
    names = Names(orders={}, titles={key: dict(value) for key, value in spec["titles"].items()})
    runs = StudyRuns(spec["experiments"], names)
    claims = read_claims(with_suffix(spec["claims"], ".json"), runs) if spec["claims"] else None
    tables = [_table(item, runs, page.parent) for item in spec["tables"]]
    figures = [_figure(item, runs, page.parent) for item in spec["figures"]]
    card = _card(spec, runs, claims)
    html = render(
        "page.html.j2",
        spec=spec,
        card=card,
        coverage=runs.coverage(),
        claims=claims,
        claims_links=links(spec["claims"], page.parent),
        sections=[
            ("tables", "Tables", "table", tables),
            (
                "figures",
                "Figures",
                "figure",
                [figure for figure in figures if not figure.is_across],
            ),
            (
                "across",
                "Across settings",
                "figure",
                [figure for figure in figures if figure.is_across],
            ),
        ],
        runs=runs,
        experiments=[(name, runs.coverage(name)) for name in runs.experiments],
        made=_made(runs.finished()),
        choices=_choices(runs, names),
        made_by_another=_made_by_another(spec, runs),
        generated=GENERATED if _is_generated(runs) else "",
    )
    write_text(page, html)
    write_text(card_file, json.dumps(card))


def _item(item: Spec, runs: StudyRuns, folder: Path) -> partial[Item]:
    """A figure or table without its content."""
    experiment = item["experiment"]
    return partial(
        Item,
        id=item["name"],
        title=str(item["title"]),
        caption=item["caption"],
        command=item["command"],
        links=links(item["files"], folder),
        coverage=runs.coverage(experiment) if experiment else None,
        labels=merged(cell["labels"] for cell in runs.experiments.get(experiment, [])),
    )


def _figure(item: Spec, runs: StudyRuns, folder: Path) -> Item:
    made = partial(_item(item, runs, folder), is_across=KINDS[item["kind"]].is_across)
    if not _has_runs(runs, item["experiment"]):
        return made()
    picture = with_suffix(item["files"], ".png")
    comparison = Comparison.read(with_suffix(item["files"], ".json"))
    return made(image=data_url(picture), seen=alternative(item, comparison))


def _table(item: Spec, runs: StudyRuns, folder: Path) -> Item:
    table = shown_table(item, runs)
    return _item(item, runs, folder)(table=table if table.columns else None)


def _has_runs(runs: StudyRuns, experiment: str) -> bool:
    counted = runs.coverage(experiment).runs
    return counted.missing < counted.planned


def _is_generated(runs: StudyRuns) -> bool:
    return any(cell.get("generated") for cell in runs.cells.values())


def _choices(runs: StudyRuns, names: Names) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The values to filter by: for each label its name, its title, and its values with titles."""
    cells = (cell["labels"] for cells in runs.experiments.values() for cell in cells)
    labels = merged(cells)
    return [
        (label.lower(), title, _titled(label, labels[label], names))
        for label, title in FILTERS.items()
        if len(labels.get(label, [])) > 1
    ]


def _titled(label: str, values: Sequence[str], names: Names) -> list[tuple[str, str]]:
    return [(value, names.value(label, value)) for value in values]


def _made(cells: Sequence[Cell]) -> list[tuple[str, list[tuple[str, int]]]]:
    """With what the runs were made, and how many with each."""
    kinds: dict[str, list[str]] = {
        "Device": [", ".join(cell["devices"]) for cell in cells],
        "Trainer": [cell["trainer"] for cell in cells],
        "Commit": [cell["commit"] for cell in cells],
        "Versions": [_versions(cell["versions"]) for cell in cells],
    }
    return [(title, Counter(values).most_common()) for title, values in kinds.items() if values]


def _made_by_another(spec: Spec, runs: StudyRuns) -> list[str]:
    """A sentence for each of the user's own files that made records in another version than that
    of the spec."""
    current = spec["my"]
    changed = (
        own.changed_files(cell["my"], lambda module: current.get(module, ""))
        for cell in runs.finished()
    )
    return own.made_by_another("record", changed)


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _card(spec: Spec, runs: StudyRuns, claims: Claims | None) -> dict[str, Any]:
    """What the index shows of a study."""
    coverage, finished = runs.coverage(), runs.finished()
    statuses = ("planned", "done", "diverged", "unfinished", "missing")
    return {
        **{key: spec[key] for key in ("name", "title", "source", "scale", "command")},
        "runs": {status: getattr(coverage.runs, status) for status in statuses},
        "phrase": coverage.runs.phrase,
        "spent": coverage.spent,
        "to_go": coverage.to_go,
        "verdicts": claims.totals if claims else [],
        "date": max((cell["started"][:10] for cell in finished), default=""),
        "commits": list(dict(Counter(cell["commit"] for cell in finished).most_common())),
        "generated": _is_generated(runs),
    }
