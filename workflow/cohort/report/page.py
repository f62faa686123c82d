"""Writes the report: one HTML file that needs nothing beside it, with links to the other forms of each figure and table."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cohort.claims.judge import TITLE as CLAIMS_TITLE
from cohort.claims.layout import lay_out as lay_out_claims
from cohort.core.files import write_text
from cohort.metrics.names import Names
from cohort.metrics.summary import read_runs
from cohort.report.style import CSS
from cohort.tables.layout import Entry, Layout
from cohort.tables.sizes import needs_no_runs
from cohort.tables.tabulate import laid_out

WORDS = {
    ".png": "PNG",
    ".pdf": "PDF",
    ".svg": "SVG",
    ".csv": "CSV",
    ".md": "Markdown",
    ".tex": "LaTeX",
}


def write_page(spec: Mapping[str, Any], output: str | Path) -> None:
    """Write the page of `spec`: scale, notes and studies, each with its figures and tables and their files."""
    folder = Path(output).parent
    studies = list(spec["studies"])
    title = "Cohort: which clients should train next?"
    body = [
        f"<h1>{escape(title)}</h1>",
        _scale(spec["scale"]),
        _list(spec["notes"]),
        _contents(studies),
    ]
    body += [_study(study, folder, spec) for study in studies]
    write_text(
        output,
        PAGE.format(title=escape(title), css=CSS, body="\n".join(part for part in body if part)),
    )


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{css}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _scale(scale: str) -> str:
    if scale == "full":
        return ""
    return (
        f'<p class="warning">These runs were made at the scale “{escape(scale)}”, a cheaper version of the studies: '
        "their numbers are no reproduction of any paper.</p>"
    )


def _list(notes: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _contents(studies: list[Mapping[str, Any]]) -> str:
    if len(studies) < 2:
        return ""
    links = "".join(
        f'<li><a href="#{escape(study["name"])}">{escape(study["title"])}</a></li>'
        for study in studies
    )
    return f"<nav><ul>{links}</ul></nav>"


def _study(study: Mapping[str, Any], folder: Path, spec: Mapping[str, Any]) -> str:
    name, description = study["name"], study.get("description", "")
    parts = [
        f"<h2>{escape(study['title'])}</h2>",
        f"<p>{escape(description)}</p>" if description else "",
    ]
    parts += [_item(name, figure, _image(figure), folder) for figure in study["figures"]]
    titles = study.get("titles", {})
    parts += [
        _item(name, table, _table(table, spec["scale"], titles), folder)
        for table in study["tables"]
    ]
    parts += [_claims(name, study["claims"], spec["scale"], folder)] if study.get("claims") else []
    return f'<section id="{escape(name)}">{"".join(parts)}</section>'


def _item(study: str, item: Mapping[str, Any], content: str, folder: Path) -> str:
    caption = f"<p>{escape(item['caption'])}</p>" if item.get("caption") else ""
    links = " ".join(_link(file, folder) for file in item["files"])
    runs = f"{escape(read_runs(item['metrics']).phrase)} · " if item["metrics"] else ""
    return (
        f'<figure id="{escape(study)}-{escape(item["name"])}"><h3>{escape(_title(item))}</h3>{content}<figcaption>{caption}'
        f'<p class="runs">{runs}{links}</p></figcaption></figure>'
    )


def _link(file: str | Path, folder: Path) -> str:
    target = quote(Path(os.path.relpath(file, folder)).as_posix())
    return f'<a href="{escape(target)}">{WORDS[Path(file).suffix]}</a>'


def _image(figure: Mapping[str, Any]) -> str:
    picture = _with_ending(figure, ".png").read_bytes()
    return f'<img alt="{escape(_title(figure))}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _table(table: Mapping[str, Any], scale: str, titles: Mapping[str, Mapping[str, str]]) -> str:
    file = _with_ending(table, ".csv")
    numbers = _read_sizes(file) if needs_no_runs(table) else _read_numbers(file)
    names = Names(orders=_orders(numbers), titles={label: dict(of) for label, of in titles.items()})
    return _rows(laid_out(numbers, {**table, "scale": scale}, names, table["metrics"]))


def _claims(study: str, files: list[str], scale: str, folder: Path) -> str:
    import pandas as pd

    claims = pd.read_csv(_with_ending({"files": files}, ".csv"), keep_default_na=False)
    links = " ".join(_link(file, folder) for file in files)
    return (
        f'<figure id="{escape(study)}-claims"><h3>{CLAIMS_TITLE}</h3>{_rows(lay_out_claims(claims, scale))}'
        f'<figcaption><p class="runs">{links}</p></figcaption></figure>'
    )


def _rows(layout: Layout) -> str:
    shape = "prose" if layout.prose else "number"
    head = "".join(f"<th>{escape(word)}</th>" for word in layout.heads)
    head += "".join(f'<th class="{shape}">{escape(word)}</th>' for word in layout.columns)
    place = f'<th class="{shape}">' if layout.prose else "<th>"
    lines = [
        "".join(
            [
                *(f"{place}{escape(word)}</th>" for word in words),
                *(_entry(entry, shape) for entry in entries),
            ]
        )
        for words, entries in layout.lines
    ]
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    notes = f'<p class="key">{escape(" ".join(layout.notes))}</p>'
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}'


def _entry(entry: Entry, shape: str) -> str:
    value = f"<strong>{escape(entry.value)}</strong>" if entry.best else escape(entry.value)
    mark = f"<sup>{escape(entry.mark)}</sup>" if entry.mark else ""
    count = f' <span class="count">({escape(entry.count)})</span>' if entry.count else ""
    more = f'<div class="key">{escape(entry.more)}</div>' if entry.more else ""
    return f'<td class="{shape}">{value}{mark}{count}{more}</td>'


def _read_numbers(file: Path) -> Any:
    import pandas as pd

    from cohort.tables.compare import PAPER_NUMBERS
    from cohort.tables.measure import NUMBERS

    header = pd.read_csv(file, nrows=0).columns
    text = {column: str for column in header if column not in (*NUMBERS, *PAPER_NUMBERS)}
    return pd.read_csv(
        file,
        dtype=text,
        keep_default_na=False,
        na_values={column: [""] for column in ("mean", "sd", *PAPER_NUMBERS)},
    )


def _read_sizes(file: Path) -> Any:
    import pandas as pd

    return pd.read_csv(file, dtype={"dataset": str, "model": str})


def _orders(numbers: Any) -> dict[str, list[str]]:
    """The CSV comes in the study's order, which is kept."""
    return {column: list(dict.fromkeys(numbers[column])) for column in numbers.columns}


def _title(item: Mapping[str, Any]) -> str:
    return str(item.get("title") or item["name"])


def _with_ending(item: Mapping[str, Any], ending: str) -> Path:
    return next(Path(file) for file in item["files"] if Path(file).suffix == ending)
