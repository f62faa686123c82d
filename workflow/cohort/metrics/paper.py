"""The papers' values of `resources/paper_values`, whose README says what the columns mean."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError, suggest

FOLDER = Path("resources/paper_values")
SOURCES = (
    "printed",
    "authors' log",
    "derived",
    "approximate",
)  # the earlier counts where two of them fit one result
FIXED = ("item", "source", "doubtful", "other", "metric", "at", "round", "value", "sd")
Labels = Mapping[str, str]
Rows = dict[int, dict[str, str]]


@dataclass(frozen=True)
class PaperValue:
    """One value of a paper; `labels` are those that the paper names."""

    item: str
    source: str
    doubtful: str
    labels: dict[str, str]
    other: str
    metric: str
    at: str
    round: int | None
    value: float
    sd: float | None

    def fits(self, labels: Labels) -> bool:
        """Whether no label that both name differs."""
        return all(labels.get(name, value) == value for name, value in self.labels.items())


def paper_file(study: str, spec: Mapping[str, Any]) -> Path | None:
    """Where the values lie that a figure or table names, if it names any."""
    if not spec.get("paper"):
        return None
    return FOLDER / (f"{study}_curves.csv" if spec.get("kind") == "curves" else f"{study}.csv")


def read_paper(file: str | Path, item: str, metric: str) -> list[PaperValue]:
    """The values of an item of the paper, or of several with commas between them, for one metric."""
    return pick(read_rows(file, item), file, item, metric)


def pick(rows: Rows, file: str | Path, item: str, metric: str) -> list[PaperValue]:
    """The same from the rows of a file.

    Only these rows are read closely: planning asks for a few out of thousands.
    """
    wanted = set()
    for one in parts_of(item):
        found = held(rows, one)
        if not found:
            known = dict.fromkeys(row["item"] for row in rows.values())
            raise UserError(f"paper is '{one}', which {file} does not hold{suggest(one, known)}")
        wanted |= found
    return [
        _value(row, f"{file}, line {line}")
        for line, row in rows.items()
        if row["item"] in wanted and row["metric"] == metric
    ]


def parts_of(item: str) -> list[str]:
    """The items that `paper` names, which stand with commas between them."""
    return [part.strip() for part in item.split(",")]


def held(rows: Rows, item: str) -> set[str]:
    """The items of a file that this one means: `Fig5` is a part of `Fig3/5/6/7`."""
    return {
        name
        for name in dict.fromkeys(row["item"] for row in rows.values())
        if item in (name, *_parts(name))
    }


def read_rows(file: str | Path, item: str) -> Rows:
    """The rows of a file by line."""
    try:
        with open(file, encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in FIXED if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{file}: lacks the column '{missing[0]}'")
            return dict(enumerate(reader, start=2))
    except OSError:
        raise UserError(
            f"paper is '{item}', but there is no {file} with the paper's values; add it, or leave paper out"
        ) from None


def _value(row: Mapping[str, str], where: str) -> PaperValue:
    if None in row or None in row.values():
        raise UserError(
            f"{where}: has {'more' if None in row else 'fewer'} columns than the header"
        )
    if row["source"] not in SOURCES:
        raise UserError(
            f"{where}: source is '{row['source']}', which is not known{suggest(row['source'], SOURCES)}"
        )
    return PaperValue(
        **{name: row[name] for name in ("item", "source", "doubtful", "other", "metric", "at")},
        labels={name: text for name, text in row.items() if text and name not in FIXED},
        round=int(_number(row, "round", where)) if row["round"] else None,
        value=_number(row, "value", where),
        sd=_number(row, "sd", where) if row["sd"] else None,
    )


def _number(row: Mapping[str, str], column: str, where: str) -> float:
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{where}: {column} is '{row[column]}', but must be a number")
    return number


def _parts(item: str) -> list[str]:
    """`Fig3/5/6/7` as Fig3, Fig5, Fig6 and Fig7; `Fig9-12` as Fig9 to Fig12; nothing for an item that stands alone."""
    listed = re.fullmatch(r"([A-Za-z]+)([0-9]+(?:/[0-9]+)+)", item)
    if listed:
        return [listed[1] + number for number in listed[2].split("/")]
    span = re.fullmatch(r"([A-Za-z]+)([0-9]+)-([0-9]+)", item)
    return (
        [f"{span[1]}{number}" for number in range(int(span[2]), int(span[3]) + 1)] if span else []
    )
