"""Writes the report: one self-contained HTML file that links to the files of each figure and table.

The HTML is in `templates/`; this module gathers what the templates show.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

from cohort.claims.judge import TITLE as CLAIMS_TITLE
from cohort.claims.layout import lay_out as lay_out_claims
from cohort.core.files import write_text
from cohort.metrics.names import Names
from cohort.metrics.summary import read_runs
from cohort.tables.layout import Layout
from cohort.tables.sizes import needs_no_runs
from cohort.tables.tabulate import lay_out_table, read_numbers

TITLE = "Cohort: which clients should train next?"
FORMATS = {
    ".png": "PNG",
    ".pdf": "PDF",
    ".svg": "SVG",
    ".csv": "CSV",
    ".md": "Markdown",
    ".tex": "LaTeX",
}


@dataclass(frozen=True)
class Item:
    """A figure, a table or a study's claims: a picture as a data URL, or a laid-out table.

    `links` are pairs of a relative URL and a format's name; `runs` says how many runs it shows.
    """

    id: str
    title: str
    links: list[tuple[str, str]]
    image: str = ""
    table: Layout | None = None
    caption: str = ""
    runs: str = ""


def write_page(spec: Mapping[str, Any], output: str | Path) -> None:
    """Write the report of `spec` (scale, notes, studies with their figures, tables and claims)."""
    folder = Path(output).parent
    environment = Environment(
        loader=PackageLoader("cohort.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("page.html.j2").render(
        title=TITLE,
        scale=spec["scale"],
        notes=spec["notes"],
        studies=[
            {
                "name": study["name"],
                "title": study["title"],
                "description": study.get("description", ""),
                "items": _items(study, spec["scale"], folder),
            }
            for study in spec["studies"]
        ],
    )
    write_text(output, html)


def _items(study: Mapping[str, Any], scale: str, folder: Path) -> list[Item]:
    """The study's figures, then its tables, then its claims."""
    titles = study.get("titles", {})
    items = [
        _item(study["name"], figure, folder, image=_data_url(_with_suffix(figure["files"], ".png")))
        for figure in study["figures"]
    ]
    items += [
        _item(study["name"], table, folder, table=_table(table, scale, titles))
        for table in study["tables"]
    ]
    return items + ([_claims(study, scale, folder)] if study.get("claims") else [])


def _item(study: str, entry: Mapping[str, Any], folder: Path, **content: Any) -> Item:
    return Item(
        id=f"{study}-{entry['name']}",
        title=str(entry.get("title") or entry["name"]),
        links=_links(entry["files"], folder),
        caption=entry.get("caption", ""),
        runs=read_runs(entry["metrics"]).phrase if entry["metrics"] else "",
        **content,
    )


def _claims(study: Mapping[str, Any], scale: str, folder: Path) -> Item:
    files = study["claims"]
    claims = pd.read_csv(_with_suffix(files, ".csv"), keep_default_na=False)
    return Item(
        id=f"{study['name']}-claims",
        title=CLAIMS_TITLE,
        links=_links(files, folder),
        table=lay_out_claims(claims, scale),
    )


def _table(table: Mapping[str, Any], scale: str, titles: Mapping[str, Mapping[str, str]]) -> Layout:
    numbers = read_numbers(_with_suffix(table["files"], ".csv"), sizes=needs_no_runs(table))
    names = Names(
        orders={column: list(dict.fromkeys(numbers[column])) for column in numbers.columns},
        titles={label: dict(values) for label, values in titles.items()},
    )
    return lay_out_table(numbers, {**table, "scale": scale}, names, table["metrics"])


def _data_url(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _links(files: Iterable[str | Path], folder: Path) -> list[tuple[str, str]]:
    return [
        (quote(Path(os.path.relpath(file, folder)).as_posix()), FORMATS[Path(file).suffix])
        for file in files
    ]


def _with_suffix(files: Iterable[str | Path], suffix: str) -> Path:
    return next(Path(file) for file in files if Path(file).suffix == suffix)
