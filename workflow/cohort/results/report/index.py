"""Writes the index: a card for each study that has a page."""

from __future__ import annotations

import json
from pathlib import Path

from cohort.core.files import write_text
from cohort.results.report.render import render


def write_index(output: str | Path) -> None:
    """Write the index of the pages in its folder, from their cards; leave it if nothing changed."""
    output = Path(output)
    files = [file for file in output.parent.glob("*.json") if file.with_suffix(".html").exists()]
    cards = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    cards.sort(key=lambda card: (not card["source"], card["name"]))
    html = render("index.html.j2", cards=cards)
    if not output.exists() or output.read_text(encoding="utf-8") != html:
        write_text(output, html)
