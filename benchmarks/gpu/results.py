"""The results file: one JSON object, with an entry for each piece."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Row = dict[str, str | float | None]


def read_entries(file: Path) -> dict[str, Entry]:
    """Read the entries of a results file by piece; none if there is no file."""
    entries: dict[str, Entry] = json.loads(file.read_text()) if file.exists() else {}
    return entries


def put_entry(file: Path, piece: str, entry: Entry) -> None:
    """Replace the entry of a piece in a results file; keep those of the others."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(read_entries(file) | {piece: entry}, indent=1) + "\n")
    temporary.replace(file)


def add_failure(file: Path, piece: str, sentence: str) -> None:
    """Add a failure to the entry of a piece in a results file."""
    entry = read_entries(file)[piece]
    put_entry(file, piece, entry | {"failures": [*entry["failures"], sentence]})
