"""Writes the index: a card for each study that has a page, or a preview of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cohort.core.files import write_text
from cohort.results.report.render import render

PREVIEWS = "../partial/report"  # from the folder of the pages


def write_index(output: str | Path, releases: Sequence[tuple[str, str, int]] = ()) -> None:
    """Write the index of the pages in its folder, from their cards, those with the most finished
    runs first; leave it if nothing changed.

    A study without a page is shown by its preview. `releases` have a study's name, the name of the
    file of its released runs, and their number.
    """
    output = Path(output)
    cards = _cards(output.parent, "")
    pages = {card["name"] for _, card in cards}
    previews = _cards(output.parent / PREVIEWS, f"{PREVIEWS}/")
    cards += [(url, card) for url, card in previews if card["name"] not in pages]
    cards.sort(key=lambda entry: (-entry[1]["runs"]["done"], entry[1]["name"]))
    html = render("index.html.j2", cards=cards, releases=releases)
    if not output.exists() or output.read_text(encoding="utf-8") != html:
        write_text(output, html)


def _cards(folder: Path, prefix: str) -> list[tuple[str, dict[str, Any]]]:
    """Read the card of each page in a folder, paired with the page's URL, `prefix` included, and
    say whether it is a preview."""
    files = [file for file in folder.glob("*.json") if file.with_suffix(".html").exists()]
    cards = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    known = {"is_preview": folder.parent.name == Path(PREVIEWS).parent.name}
    return [(f"{prefix}{card['name']}.html", card | known) for card in cards]
