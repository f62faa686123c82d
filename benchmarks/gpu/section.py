"""The section of docs/performance.md about GPUs, from the results file."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gpu.pieces import PIECES, Piece
from benchmarks.gpu.results import Entry, Row
from benchmarks.tables import NOTHING, Section, number, table

NOT_MEASURED = "not measured yet"


def section(entries: dict[str, Entry]) -> Section:
    """Format the tables of all pieces, each with the machine and commit that it was measured on."""
    devices = dict.fromkeys(entry["device"] for entry in entries.values() if "device" in entry)
    result = Section(f"On a GPU: {', '.join(devices) or NOT_MEASURED}")
    missing = []
    for name, piece in PIECES.items():
        entry = entries.get(name, {})
        if entry.get("rows"):
            result.text += [f"### {piece.title}", *_paragraphs(piece, entry)]
        else:
            missing.append(piece.title)
        result.failures += [f"{name}: {line}" for line in entry.get("failures", [])]
    if missing:
        result.text.append(f"{NOT_MEASURED.capitalize()} (`make gpu`): {'; '.join(missing)}.")
    return result


def _paragraphs(piece: Piece, entry: Entry) -> list[str]:
    measured = (
        f"Measured {entry['date']} by `make gpu` at commit {entry['commit']} on {entry['device']}, "
        f"driver {entry['driver']}, in {entry['seconds']:.0f} s. Python {entry['python']}, torch "
        f"{entry['torch']}."
    )
    return [measured, piece.about, _table(entry["rows"])]


def _table(rows: Sequence[Row]) -> str:
    titles = list(dict.fromkeys(title for row in rows for title in row))
    return table(titles, [[_cell(row.get(title)) for title in titles] for row in rows])


def _cell(value: str | float | None) -> str:
    if isinstance(value, float):
        return number(value)
    return NOTHING if value is None else str(value)
