"""Reads papers' values from `resources/paper_values`, whose README explains the columns, and
matches them with our results by their labels."""

from __future__ import annotations

import csv
import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.core import user_files
from cohort.core.errors import UserError, explain_errors, suggest
from cohort.core.shipped import shipped
from cohort.results.series import NO_VALUE, label_text

FOLDER = Path("resources/paper_values")
# From the most to the least trusted: the first one counts where several have a value.
SOURCES = ("printed", "authors' log", "derived", "approximate")
FIXED = ("item", "source", "doubtful", "other", "metric", "at", "round", "value", "sd")
RUNS = "runs"  # how many runs a value is the mean of, a column that a file may have
Labels = Mapping[str, str]
Cell = Mapping[Any, Any]


@dataclass(frozen=True)
class PaperValue:
    """One value of a paper; `labels` are the settings that the paper states for it."""

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
    runs: int | None = None

    def fits(self, labels: Labels) -> bool:
        """Whether these labels contradict none that the paper states for the value."""
        return all(labels.get(name, value) == value for name, value in self.labels.items())


def doubts(texts: Iterable[str]) -> str:
    """The doubts about several values, each once, separated by semicolons as those of one are."""
    return "; ".join(dict.fromkeys(filter(None, "; ".join(texts).split("; "))))


def paper_file(study: str, spec: Mapping[str, Any]) -> Path | None:
    """The file of the paper's values for a figure or table, None if its spec names none. Without a
    file of curves, a figure of curves shows the single values that have a round."""
    if not spec.get("paper"):
        return None
    single, curves = paper_files(study)
    return curves if spec.get("kind") == "curves" and curves.exists() else single


def paper_files(study: str) -> tuple[Path, Path]:
    """The path of a paper's file of single values and of that of curves; either may be missing."""
    own_folder = user_files.folder() / FOLDER.name
    folder = own_folder if list(own_folder.glob(f"{study}*.csv")) else shipped(FOLDER)
    return folder / f"{study}.csv", folder / f"{study}_curves.csv"


def read_paper(file: str | Path, items: str, metric: str) -> list[PaperValue]:
    """Read the values of one metric of an item of the paper, or of several items (`Fig1, Fig2`).
    Raise UserError for an item that the file does not hold."""
    (values,) = _values_of([open_paper(file, items)], items, metric)
    return values


def read_papers(files: Iterable[Path], items: str, metric: str) -> list[list[PaperValue]]:
    """`read_paper` for files which hold the items together, and any of which may be missing."""
    exist = [
        open_paper(file, items) if file.exists() else PaperFile(str(file), []) for file in files
    ]
    return _values_of(exist, items, metric)


def _values_of(files: Sequence[PaperFile], items: str, metric: str) -> list[list[PaperValue]]:
    for item in split_items(items):
        if not any(file.items_containing(item) for file in files):
            where = " or ".join(file.path for file in files)
            available = [name for file in files for name in file.items]
            raise UserError(f"paper is '{item}', which is not in {where}{suggest(item, available)}")
    return [file.values(items, metric) for file in files]


class PaperFile:
    """The rows of a paper's file. A row is parsed when it is first asked for, since planning needs
    a few out of thousands."""

    def __init__(self, path: str, rows: Iterable[dict[str, str]]):
        self.path = path
        self.rows = list(rows)
        self.items = list(dict.fromkeys(row["item"] for row in self.rows))
        self._indices: dict[tuple[str, str], list[int]] = {}
        for index, row in enumerate(self.rows):
            self._indices.setdefault((row["item"], row["metric"]), []).append(index)
        self._parsed = functools.cache(self._parse)

    def items_containing(self, item: str) -> list[str]:
        """The items of the file's rows that contain this one: `Fig3/5/6/7` contains `Fig5`."""
        return [name for name in self.items if item in (name, *_split_item(name))]

    def values(self, items: str, metric: str) -> list[PaperValue]:
        """The values of one metric of an item, or of several (`Fig1, Fig2`), in the order of the
        file."""
        names = chain.from_iterable(map(self.items_containing, split_items(items)))
        wanted = {index for name in names for index in self._indices.get((name, metric), ())}
        return list(map(self._parsed, sorted(wanted)))

    def _parse(self, index: int) -> PaperValue:
        row, where = self.rows[index], f"{self.path}, line {index + 2}"
        if None in row or None in row.values():
            raise UserError(
                f"{where}: has {'more' if None in row else 'fewer'} columns than the header"
            )
        if row["source"] not in SOURCES:
            raise UserError(
                f"{where}: source is '{row['source']}', which is not known"
                f"{suggest(row['source'], SOURCES)}"
            )
        numbers = {
            column: _number(row[column], column, where)
            for column in ("round", "value", "sd", RUNS)
            if row.get(column) or column == "value"
        }
        return PaperValue(
            **{name: row[name] for name in ("item", "source", "doubtful", "other", "metric", "at")},
            labels={name: row[name] for name in row if row[name] and name not in (*FIXED, RUNS)},
            round=int(numbers["round"]) if "round" in numbers else None,
            value=numbers["value"],
            sd=numbers.get("sd"),
            runs=int(numbers[RUNS]) if RUNS in numbers else None,
        )


def _number(text: str, column: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{where}: {column} is '{text}', but must be a number")
    return number


def split_items(items: str) -> list[str]:
    """Split a study's key `paper` into the items that it names, separated by commas."""
    return [part.strip() for part in items.split(",")]


def _split_item(item: str) -> list[str]:
    """Split `Fig3/5/6/7` into Fig3, Fig5, Fig6, Fig7 and `Fig9-12` into Fig9 to Fig12."""
    listed = re.fullmatch(r"([A-Za-z]+)([0-9]+(?:/[0-9]+)+)", item)
    if listed:
        return [listed[1] + number for number in listed[2].split("/")]
    span = re.fullmatch(r"([A-Za-z]+)([0-9]+)-([0-9]+)", item)
    numbers = range(int(span[2]), int(span[3]) + 1) if span else ()
    return [f"{span[1]}{number}" for number in numbers] if span else []


def open_paper(file: str | Path, item: str) -> PaperFile:
    """Read a paper's file. Raise UserError if it does not exist; only the message needs `item`."""
    try:
        with explain_errors(file):
            status = Path(file).stat()
    except FileNotFoundError:
        raise UserError(
            f"paper is '{item}', but there is no {file} with the paper's values; add it, "
            "or leave paper out"
        ) from None
    return _cached_file(str(file), status.st_ino, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=16)
def _cached_file(file: str, *version: int) -> PaperFile:
    """A version of a file. Planning a study asks for AML's curves 70 times."""
    with explain_errors(file), open(file, encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        missing = [name for name in FIXED if name not in (reader.fieldnames or ())]
        if missing:
            raise UserError(f"{file}: lacks the column '{missing[0]}'")
        return PaperFile(file, reader)


@dataclass(frozen=True)
class PaperMatch:
    """The paper's values for a result, which is identified by its labels."""

    labels: dict[str, str]
    values: list[PaperValue]


def match_values(
    values: list[PaperValue],
    cells: Iterable[Cell],
    shown: Iterable[str],
    labels: Iterable[str],
    *,
    at: str = "",
) -> list[PaperMatch]:
    """Group the cells by the labels `shown` and find the values that belong to each group.

    A group gets one value where `at` is given, otherwise a curve, sorted by round. A value fits a
    group if no label that all of the group's cells share contradicts it, shown or not: an
    experiment with one model does not match the values of other models. Of the values that fit,
    those of the most trusted source count. Raise UserError where two values fit.
    """
    shown, labels = tuple(shown), tuple(labels)
    by_labels: dict[tuple[tuple[str, str], ...], list[PaperValue]] = {}  # those of a curve together
    for value in values:
        if not at or value.at in ("", at):
            by_labels.setdefault(tuple(value.labels.items()), []).append(value)
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(label_text(cell.get(name)) for name in shown), []).append(cell)
    matches = []
    for key, group in groups.items():
        shared = _shared_labels(group, labels)
        fitting = [value for same in by_labels.values() if same[0].fits(shared) for value in same]
        best = min((SOURCES.index(value.source) for value in fitting), default=0)
        fitting = [value for value in fitting if value.source == SOURCES[best]]
        candidates = [[value] for value in fitting] if at else _curves(fitting)
        named = dict(zip(shown, key, strict=True))
        if len(candidates) > 1:
            texts = ", ".join(f"{name} {value}" for name, value in named.items())
            first, second = (_described(values[0], named) for values in candidates[:2])
            raise UserError(
                f"paper has two values for {texts}: {first} and {second}; name one item, keep them "
                f"apart by an axis, or add a column to the file in {FOLDER} with the label that "
                "tells them apart"
            )
        matches.append(PaperMatch(named, candidates[0] if candidates else []))
    return matches


def _shared_labels(group: list[Cell], labels: Iterable[str]) -> dict[str, str]:
    """The labels that have one and the same value in all cells of a group."""
    shared = {}
    for name in labels:
        text, *others = {label_text(cell.get(name)) for cell in group}
        if not others and text != NO_VALUE:
            shared[name] = text
    return shared


def _curves(values: list[PaperValue]) -> list[list[PaperValue]]:
    curves: dict[Any, list[PaperValue]] = {}
    for value in values:
        if value.round is not None:
            key = (value.item, tuple(value.labels.items()), value.other)
            curves.setdefault(key, []).append(value)
    return [sorted(curve, key=lambda value: value.round or 0) for curve in curves.values()]


def _described(value: PaperValue, named: Mapping[str, str]) -> str:
    labels = [f"{name} {text}" for name, text in value.labels.items() if name not in named]
    return f"{value.value:g} ({'; '.join(filter(None, [value.item, *labels, value.other]))})"
