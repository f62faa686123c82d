"""A table as a person reads it: wide, in words and rounded numbers. Markdown, LaTeX and the report's HTML are written from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cohort.records.names import METRICS, Metric, Names
from cohort.records.summary import NO_VALUE
from cohort.tables.measure import NUMBERS

if TYPE_CHECKING:
    from pandas import DataFrame

AT = {"last": "last evaluation", "max": "highest evaluation", "mean": "mean of all evaluations", "last-10": "mean of the last ten rounds"}
DAGGER = "†"
NO_RESULT = "no result yet"


@dataclass(frozen=True)
class Entry:
    """One cell of a table: `value` may be printed bold, `count` follows it in parentheses."""

    value: str
    count: str = ""
    best: bool = False
    diverged: bool = False


@dataclass(frozen=True)
class Layout:
    """Header and lines of a table. The first texts of a line name the row, as many as there are `heads`."""

    heads: list[str]
    columns: list[str]
    lines: list[tuple[list[str], list[Entry]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lay_out(numbers: DataFrame, names: Names) -> Layout:
    """Lay out the numbers of a table (see measure.py), in the order in which they come."""
    labels = [column for column in numbers.columns if column not in NUMBERS]
    rows, across = labels[:-1], labels[-1]
    records = [dict(zip(numbers.columns, row, strict=True)) for row in numbers.itertuples(index=False)]
    metric = METRICS[records[0]["metric"]]
    best = _best(records, labels, metric)
    columns = names.ordered(across, (record[across] for record in records))
    lines: dict[tuple[str, ...], dict[str, Entry]] = {}
    for place, record in enumerate(records):
        lines.setdefault(tuple(record[row] for row in rows), {})[record[across]] = _entry(record, metric, place in best)
    layout = Layout([names.title(row) for row in rows], [names.value(across, column) for column in columns])
    for key, entries in lines.items():
        words = [names.value(row, value) for row, value in zip(rows, key, strict=True)]
        layout.lines.append((words, [entries.get(column, Entry(NO_VALUE)) for column in columns]))
    layout.notes.extend(_notes(records, layout, metric))
    return layout


def _entry(record: dict[str, Any], metric: Metric, best: bool) -> Entry:
    n, planned = record["n"], record["planned"]
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    if record["diverged"] == planned and not n:
        return Entry("diverged", count)
    if not n:
        return Entry(NO_RESULT, count, diverged=bool(record["diverged"]))
    deviation = f" ± {_rounded(record['sd'], metric)}" if n > 1 else ""
    return Entry(_rounded(record["mean"], metric) + deviation, count, best, bool(record["diverged"]))


def _best(records: list[dict[str, Any]], labels: list[str], metric: Metric) -> set[int]:
    """The places of the best means among those that differ in their strategy only; in each row where the table has no strategies."""
    if not metric.better:
        return set()
    rival = "strategy" if "strategy" in labels else labels[-1]
    rounds: dict[tuple[str, ...], dict[int, float]] = {}
    for place, record in enumerate(records):
        if record["n"]:
            mean = float(_rounded(record["mean"], metric))
            rounds.setdefault(tuple(record[label] for label in labels if label != rival), {})[place] = mean
    choose = max if metric.better == "high" else min
    winners = [(means, choose(means.values())) for means in rounds.values() if len(means) > 1]
    return {place for means, top in winners for place, mean in means.items() if mean == top}


def _notes(records: list[dict[str, Any]], layout: Layout, metric: Metric) -> list[str]:
    entries = [entry for _, line in layout.lines for entry in line]
    notes = [f"{metric.label}, {AT[records[0]['at']]}: mean ± standard deviation over seeds (number of runs)."]
    if any(entry.best for entry in entries):
        notes.append("Bold: the best mean.")
    if any(entry.diverged for entry in entries):
        notes.append(f"{DAGGER}: a run diverged; it counts with what it measured before that.")
    if any(entry.value == NO_VALUE for entry in entries):
        notes.append(f"{NO_VALUE}: not planned.")
    return notes


def _rounded(value: float, metric: Metric) -> str:
    return f"{value * metric.scale:.{metric.digits}f}"
