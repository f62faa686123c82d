"""Renders the report's templates, and writes what several of them show: filters, times, links."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cohort.core.text import counted, duration_text
from cohort.results.claims.judged import HOLDS, MARKS

ADDRESS = re.compile(r"(https://[^\s()<>]*[^\s()<>.,;:])")
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
    environment.globals |= {
        "marks": MARKS | dict.fromkeys(HOLDS, "✓"),
        "classes": CLASSES,
    }
    environment.filters |= {
        "duration": duration_text,
        "bold": bold,
        "counted": counted,
        "linked": linked,
    }
    return environment.get_template(template).render(**content)


def linked(text: str) -> Markup:
    """The text as HTML, its addresses turned into links."""
    parts = ADDRESS.split(text)
    link = Markup('<a href="{0}">{0}</a>')
    return Markup("").join(
        link.format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def bold(text: str) -> Markup:
    """The text as HTML, with what stands between ** in bold."""
    parts = text.split("**")
    strong = Markup("<strong>{}</strong>")
    return Markup("").join(
        strong.format(part) if index % 2 else part for index, part in enumerate(parts)
    )


def links(files: Iterable[str | Path], folder: Path) -> list[tuple[str, str]]:
    """The relative URL of each file, and its format."""
    return [
        (
            quote(Path(os.path.relpath(file, folder)).as_posix()),
            Path(file).suffix.removeprefix("."),
        )
        for file in files
    ]


def data_url(picture: Path) -> str:
    """A PNG file as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def with_suffix(files: Iterable[str | Path], suffix: str) -> Path:
    """The first of the files with this suffix, such as `.png`."""
    return next(Path(file) for file in files if Path(file).suffix == suffix)
