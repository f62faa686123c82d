"""Renders the report's templates, and writes the index: a card for each study that has a page, or a
preview of one."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cohort.core.files import write_text
from cohort.core.text import counted, duration_text
from cohort.results.claims.judged import HOLDS, MARKS

PREVIEWS = "../partial/report"  # from the folder of the pages
ADDRESS, BOLD = r"(https://[^\s()<>]*[^\s()<>.,;:])", r"\*\*(.+?)\*\*"
CLASSES = {
    **{"held": "good", "not held": "bad", "undecided": "open", "tie": "open"},
    **{"leans towards held": "good leans", "leans towards not held": "bad leans"},
}


def render(template: str, **content: Any) -> str:
    """Fill a template of the report with this content; return its HTML."""
    environment = Environment(
        loader=PackageLoader("cohort.results.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"marks": MARKS | dict.fromkeys(HOLDS, "✓"), "classes": CLASSES}
    environment.filters |= {"duration": duration_text, "counted": counted}
    environment.filters["linked"] = lambda text: _tagged(text, ADDRESS, '<a href="{0}">{0}</a>')
    environment.filters["bold"] = lambda text: _tagged(text, BOLD, "<strong>{}</strong>")
    return environment.get_template(template).render(**content)


def _tagged(text: str, pattern: str, html: str) -> Markup:
    """The text as HTML, what the group of the pattern matches within this HTML."""
    parts = enumerate(re.split(pattern, text))
    return Markup("").join(
        Markup(html).format(part) if index % 2 else part for index, part in parts
    )


def links(files: Iterable[str | Path], folder: Path) -> list[tuple[str, str]]:
    """The relative URL of each file, and its format."""
    paths = [Path(os.path.relpath(file, folder)) for file in files]
    return [(quote(path.as_posix()), path.suffix.removeprefix(".")) for path in paths]


def with_suffix(files: Iterable[str | Path], suffix: str) -> Path:
    """The first of the files with this suffix, such as `.png`."""
    return next(Path(file) for file in files if Path(file).suffix == suffix)


def write_index(output: str | Path, releases: Sequence[tuple[str, str, int]] = ()) -> None:
    """Write the index of the pages in its folder, from their cards, those with the most finished
    runs first; leave it if nothing changed.

    A study without a page is shown by its preview. `releases` have a study's name, the name of the
    file of its released runs, and their number.
    """
    output = Path(output)
    cards = {}
    for prefix in (f"{PREVIEWS}/", ""):
        for file in (output.parent / prefix).glob("*.json"):
            if file.with_suffix(".html").exists():
                card = json.loads(file.read_text(encoding="utf-8"))
                card["is_preview"] = file.parents[1].name == "partial"
                cards[card["name"]] = f"{prefix}{card['name']}.html", card
    ordered = sorted(cards.values(), key=lambda it: (-it[1]["runs"]["done"], it[1]["name"]))
    html = render("index.html.j2", cards=ordered, releases=releases)
    if not output.exists() or output.read_text(encoding="utf-8") != html:
        write_text(output, html)
