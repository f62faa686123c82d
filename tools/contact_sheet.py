"""All figures that have runs on one page, each with the caption of the paper's own figure."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from cohort.core.files import write_text
from cohort.core.paths import Layout
from cohort.pipeline.specs import page_spec
from cohort.plan import Plan
from cohort.results.names import Names
from cohort.results.report.items import Item, figures_of
from cohort.results.report.render import render
from cohort.results.report.runs import StudyRuns

CAPTIONS = Path(__file__).with_name("paper_captions.csv")
"""Word for word from the papers: the study, the item, where it stands, and the caption."""


def write_contact_sheet(plan: Plan, layout: Layout, output: Path) -> None:
    """Write the page of all drawn figures of the listed studies, which links to the files that lie
    in `figures` beside it."""
    captions = read_captions()
    sections = []
    for study in plan.listed:
        shown = [
            (item, captions.get((study, item["id"]), ("", "")))
            for item in drawn(plan, layout, study)
        ]
        sections += [(study, plan.study(study).title, shown)] if shown else []
    html = render("contact_sheet.html.j2", sections=sections)
    write_text(output, html.replace('="../', '="'))


def drawn(plan: Plan, layout: Layout, study: str) -> Iterator[Item]:
    """The figures of a study that have runs."""
    spec = page_spec(plan, study, layout)
    runs = StudyRuns(spec["experiments"], Names(orders={}, titles={}))
    folder = Path(layout.page(study)[0]).parent
    yield from (item for item in figures_of(spec, runs, folder) if item["image"])


def read_captions() -> dict[tuple[str, str], tuple[str, str]]:
    """Where the paper's figure stands and its caption, by study and item."""
    with CAPTIONS.open(encoding="utf-8", newline="") as file:
        return {
            (row["study"], row["item"]): (row["where"], row["caption"])
            for row in csv.DictReader(file)
        }
