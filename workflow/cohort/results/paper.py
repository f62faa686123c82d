"""Reads papers' values (`resources/paper_values/README.md`), and matches results with them."""

import contextlib
import csv
import functools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.core import UserError, check_allowed, explain_errors, user_files
from cohort.core.shipped import shipped
from cohort.results.series import NO_VALUE, label_text

FOLDER = Path("resources/paper_values")
SOURCES = ("printed", "authors' log", "derived", "approximate")  # the most trusted first
REQUIRED_COLUMNS = ("item", "source", "doubtful", "other", "metric", "at", "round", "value", "sd")
RUNS = "runs"  # how many runs a value is the mean of, a column that a file may have
NON_LABELS = (*REQUIRED_COLUMNS, RUNS)
Labels = Mapping[str, str]
LabeledCell = Mapping[Any, Any]


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

    @property
    def title(self) -> str:
        """The item as in a sentence: `Table II`."""
        words = {"Table": "Table ", "Fig": "Figure ", "text": "text "}
        return re.sub("^(Table|Fig|text)[:-]?", lambda match: words[match[1]], self.item)

    def fits(self, labels: Labels) -> bool:
        """Whether these labels contradict none that the paper states for the value."""
        return all(labels.get(name, value) == value for name, value in self.labels.items())


def doubts(texts: Iterable[str]) -> str:
    """The doubts about several values, each once, separated by semicolons as those of one are."""
    return "; ".join(dict.fromkeys(filter(None, "; ".join(texts).split("; "))))


def paper_file(study: str, spec: Mapping[str, Any]) -> Path | None:
    """The file of the paper's values for a figure or table; None if its spec names no item."""
    if not spec.get("paper"):
        return None
    single, curves = paper_files(study)
    return curves if spec.get("kind") == "curves" and curves.exists() else single


def paper_files(study: str) -> tuple[Path, Path]:
    """The path of a paper's file of single values and of that of curves; either may be missing."""
    single, curves = f"{study}.csv", f"{study}_curves.csv"
    own_folder = user_files.folder() / FOLDER.name
    is_own = (own_folder / single).exists() or (own_folder / curves).exists()
    folder = own_folder if is_own else shipped(FOLDER)
    return folder / single, folder / curves


def read_papers(files: Sequence[Path], items: str, metric: str) -> list[list[PaperValue]]:
    """Read the values of one metric of items of a paper (`Fig1, Fig2`) from each of several files,
    of which some may be missing. Raise UserError for an item that none of them holds."""
    opened, where = list(map(_open, files)), " or ".join(map(str, files))
    if not any(opened):
        missing = f"there is no {where} with the paper's values"
        raise UserError(f"paper is '{items}', but {missing}; add it, or leave paper out")
    existing = dict.fromkeys(item for file in opened if file for item, _ in file.indices)
    wanted = dict.fromkeys(map(str.strip, items.split(",")))
    for item in wanted:
        check_allowed(item, existing, f"paper is '{item}', which is not in {where}")
    return [file.values(wanted, metric) if file else [] for file in opened]


class PaperFile:
    """The rows of a paper's file, and their `indices` by item and metric. A row is parsed when it
    is first asked for, since planning needs a few out of thousands."""

    def __init__(self, path: str, rows: Iterable[dict[str, str]]):
        self.path, self.rows = path, list(rows)
        self.indices: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for index, row in enumerate(self.rows):
            self.indices[row["item"], row["metric"]].append(index)
        self._parsed = functools.cache(self._parse)

    def values(self, items: Iterable[str], metric: str) -> list[PaperValue]:
        """The values of one metric of these items, in the order of the file."""
        wanted = (self.indices.get((item, metric), []) for item in items)
        return list(map(self._parsed, sorted(chain.from_iterable(wanted))))

    def _parse(self, index: int) -> PaperValue:
        row, where = self.rows[index], f"{self.path}, line {index + 2}"
        if None in row or None in row.values():
            amount = "more" if None in row else "fewer"
            raise UserError(f"{where}: has {amount} columns than the header")
        problem = f"{where}: source is '{row['source']}', which is not known"
        check_allowed(row["source"], SOURCES, problem)
        numbers = {
            column: _number(row[column], column, where)
            for column in ("round", "value", "sd", RUNS)
            if row.get(column) or column == "value"
        }
        return PaperValue(
            **{name: row[name] for name in ("item", "source", "doubtful", "other", "metric", "at")},
            labels={name: row[name] for name in row if row[name] and name not in NON_LABELS},
            round=int(numbers["round"]) if "round" in numbers else None,
            value=numbers["value"],
            sd=numbers.get("sd"),
            runs=int(numbers[RUNS]) if RUNS in numbers else None,
        )


def _number(text: str, column: str, where: str) -> float:
    least = {"sd": 0, RUNS: 1}.get(column, -math.inf)
    with contextlib.suppress(ValueError):
        number = float(text)
        is_whole = number.is_integer() or column not in ("round", RUNS)
        if math.isfinite(number) and number >= least and is_whole:
            return number
    raise UserError(f"{where}: {column} is '{text}', which it cannot be")


def _open(file: Path) -> PaperFile | None:
    with explain_errors(file):
        if not file.exists():
            return None
        status = file.stat()
    return _cached_file(str(file), status.st_ino, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=16)
def _cached_file(file: str, *version: int) -> PaperFile:
    """A version of a file. Planning a study asks for AML's curves 70 times."""
    with explain_errors(file), open(file, encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        missing = [name for name in REQUIRED_COLUMNS if name not in (reader.fieldnames or ())]
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
    cells: Iterable[LabeledCell],
    group_by: Iterable[str],
    labels: Iterable[str],
    *,
    at: str = "",
) -> list[PaperMatch]:
    """Group the cells by the labels `group_by` and find the values that belong to each group.

    A group gets one value where `at` is given, otherwise a curve, sorted by round. A value fits a
    group if no label that all of the group's cells share contradicts it: an experiment with one
    model does not match the values of other models. Of the values that fit, those of the most
    trusted source count. Raise UserError where two values fit.
    """
    group_by, labels = tuple(group_by), tuple(labels)
    by_labels: defaultdict[Any, list[PaperValue]] = defaultdict(list)  # those of a curve together
    for value in values:
        if not at or value.at in ("", at):
            by_labels[tuple(value.labels.items())].append(value)
    groups: defaultdict[tuple[str, ...], list[LabeledCell]] = defaultdict(list)
    for cell in cells:
        groups[tuple(label_text(cell.get(name)) for name in group_by)].append(cell)
    matches = []
    for key, group in groups.items():
        shared = {}
        for name in labels:
            text, *others = {label_text(cell.get(name)) for cell in group}
            if not others and text != NO_VALUE:
                shared[name] = text
        fitting = [value for row in by_labels.values() if row[0].fits(shared) for value in row]
        best = min((SOURCES.index(value.source) for value in fitting), default=0)
        trusted = [value for value in fitting if value.source == SOURCES[best]]
        candidates = [[value] for value in trusted] if at else _curves(trusted)
        group_labels = dict(zip(group_by, key, strict=True))
        matches.append(PaperMatch(group_labels, _only_one(candidates, group_labels)))
    return matches


def _only_one(candidates: list[list[PaperValue]], labels: Mapping[str, str]) -> list[PaperValue]:
    """The only candidate for a result, empty without any. Raise UserError for several."""
    if len(candidates) > 1:
        texts = ", ".join(f"{name} {value}" for name, value in labels.items())
        first, second = (_described(values[0], labels) for values in candidates[:2])
        column = f"add a column to the file in {FOLDER} with the label that tells them apart"
        hint = f"name one item, keep them apart by an axis, or {column}"
        raise UserError(f"paper has two values for {texts}: {first} and {second}; {hint}")
    return candidates[0] if candidates else []


def _curves(values: list[PaperValue]) -> list[list[PaperValue]]:
    curves: defaultdict[Any, list[PaperValue]] = defaultdict(list)
    for value in values:
        if value.round is not None:
            curves[value.item, tuple(value.labels.items()), value.other].append(value)
    return [sorted(curve, key=lambda value: value.round or 0) for curve in curves.values()]


def _described(value: PaperValue, group_labels: Mapping[str, str]) -> str:
    labels = [f"{name} {text}" for name, text in value.labels.items() if name not in group_labels]
    return f"{value.value:g} ({'; '.join(filter(None, [value.item, *labels, value.other]))})"
