"""The results file, one JSON object with an entry for each piece, and its section on the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.gpu import PIECES
from benchmarks.tables import NOTHING, Section, number, table

Entry = dict[str, Any]


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


def section(entries: dict[str, Entry]) -> Section:
    """Format the tables of all pieces, each with the machine and commit that it was measured on."""
    devices = dict.fromkeys(entry["device"] for entry in entries.values() if "device" in entry)
    result = Section("On a GPU", [", ".join(devices) + "." if devices else "Not measured yet."])
    for name, (title, about) in PIECES.items():
        entry = entries.get(name, {})
        if rows := entry.get("rows"):
            measured = (
                f"Measured {entry['date']} by `make gpu` at commit {entry['commit']}, driver "
                f"{entry['driver']}, Python {entry['python']}, torch {entry['torch']}."
            )
            titles = list(dict.fromkeys(column for row in rows for column in row))
            cells = [[_cell(row.get(column)) for column in titles] for row in rows]
            result.text += [f"### {title}", f"{about} {measured}", table(titles, cells)]
        result.failures += [f"{name}: {line}" for line in entry.get("failures", [])]
    return result


def _cell(value: str | float | None) -> str:
    if isinstance(value, float):
        return number(value)
    return NOTHING if value is None else str(value)
