"""Lays out a table for readers: titles, rounded numbers and notes, the same in every format.

A table has a column per value of one label; a comparison with a paper has a row per result instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cohort.core.metric import Metric
from cohort.results.at import described
from cohort.results.names import METRICS, Names
from cohort.results.series import GENERATED, NO_VALUE
from cohort.results.tables.compare import PAPER_NUMBERS, PAPER_WORDS
from cohort.results.tables.measure import NUMBERS

if TYPE_CHECKING:
    from pandas import DataFrame

DAGGER, DOUBLE_DAGGER = "†", "‡"
DIVERGED = (
    "a run diverged; it counts with the worst value: chance level for an accuracy, the largest for "
    "a loss, never for a target."
)
NO_RESULT = "no result yet"
MEASURE = "Measure"  # the head of a column of them
Record = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One cell: `value` (bold if `best`), footnote `mark`, `count` in parentheses, `more` text.

    `mean`, `sd` and `interval` are the parts of a value of several runs; `labels` say of which runs
    it is. A cell of several results has `parts`, each with a value and a mark of its own.
    """

    value: str = ""
    count: str = ""
    best: bool = False
    mark: str = ""
    more: str = ""
    mean: str = ""
    sd: str = ""
    interval: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Entry, ...] = ()

    @property
    def pieces(self) -> tuple[Entry, ...]:
        """What is separated by slashes: the parts, or the cell itself."""
        return self.parts or (self,)


@dataclass(frozen=True)
class Layout:
    """A table whose lines have a text for each of `heads` and an entry for each of `columns`.

    The cells of a `prose` table are texts that may need several lines.
    """

    heads: list[str]
    columns: list[str]
    lines: list[tuple[list[str], list[Entry]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prose: bool = False


def lay_out(
    numbers: DataFrame,
    names: Names,
    *,
    scale: str = "full",
    generated: bool = False,
    joined: bool = False,
) -> Layout:
    """Lay out the numbers that `measure` returns, in their order.

    `joined` puts the measures, or else the values of the last label, into one row, separated by
    slashes.
    """
    labels = [
        column
        for column in numbers.columns
        if column not in (*NUMBERS, *PAPER_NUMBERS, *PAPER_WORDS)
    ]
    records = [
        dict(zip(numbers.columns, row, strict=True)) for row in numbers.itertuples(index=False)
    ]
    measures = dict.fromkeys(_measure(record) for record in records)
    entries = [
        replace(_entry(record, METRICS[record["metric"]]), labels=_part(record, labels))
        for record in records
    ]
    layout = (_long if "paper" in numbers else _wide)(
        records, entries, labels, names, several=len(measures) > 1
    )
    if not records:
        return replace(layout, notes=["Nothing of it is planned at this scale."])
    if joined := joined and "paper" in numbers:
        layout = _joined(layout)
    layout.notes.append(
        f"{(' / ' if joined else '; ').join(measures)}: mean ± standard deviation over seeds [95 % "
        "interval of the mean] (number of runs)."
    )
    layout.notes.extend(_notes(entries))
    layout.notes.extend(_paper_notes(records, scale) if "paper" in numbers else _wide_notes(layout))
    layout.notes.extend([GENERATED.capitalize() + "."] if generated else [])
    return layout


def _part(record: Record, labels: list[str]) -> dict[str, str]:
    return {label: record[label] for label in labels}


def _measure(record: Record) -> str:
    metric = METRICS[record["metric"]]
    return metric.label if metric.by == "client" else f"{metric.label}, {described(record['at'])}"


def _wide(
    records: list[Record], entries: list[Entry], labels: list[str], names: Names, *, several: bool
) -> Layout:
    *rows, across = labels
    columns = names.ordered(across, (record[across] for record in records))
    titles = [names.value(across, column) for column in columns]
    if several:
        rows, titles = (
            labels,
            list(dict.fromkeys(METRICS[record["metric"]].label for record in records)),
        )
        columns = list(dict.fromkeys(map(_measure, records)))
        titles = titles if len(titles) == len(columns) else columns
    lines: dict[tuple[str, ...], dict[str, Entry]] = {}
    for record, entry in zip(records, entries, strict=True):
        lines.setdefault(tuple(record[row] for row in rows), {})[
            _measure(record) if several else record[across]
        ] = entry
    layout = Layout([names.title(row) for row in rows], titles)
    for key, found in lines.items():
        words = [names.value(row, value) for row, value in zip(rows, key, strict=True)]
        layout.lines.append((words, [found.get(column, Entry(NO_VALUE)) for column in columns]))
    return layout


def _long(
    records: list[Record], entries: list[Entry], labels: list[str], names: Names, *, several: bool
) -> Layout:
    judged = any(record["verdict"] for record in records)
    columns = ["Paper", "Measured", "Difference", *(["Verdict"] if judged else [])]
    layout = Layout([*map(names.title, labels), *([MEASURE] if several else [])], columns)
    for record, entry in zip(records, entries, strict=True):
        metric = METRICS[record["metric"]]
        paper = Entry(NO_VALUE)
        if _known(record["paper"]):
            deviation = (
                f" ± {_rounded(record['paper_sd'], metric).lstrip('+')}"
                if _known(record["paper_sd"])
                else ""
            )
            paper = Entry(
                _rounded(record["paper"], metric) + deviation,
                mark=DOUBLE_DAGGER if record["doubtful"] else "",
            )
        # Adding 0.0 makes -0.0 a plain 0.
        apart = round(record["difference"] * metric.scale, metric.digits) + 0.0
        difference = Entry(f"{apart:+.{metric.digits}f}" if _known(apart) else NO_VALUE)
        line = [paper, entry, difference, *([Entry(record["verdict"])] if judged else [])]
        layout.lines.append(
            (
                [
                    *(names.value(label, record[label]) for label in labels),
                    *([_measure(record)] if several else []),
                ],
                line,
            )
        )
    return layout


def _joined(layout: Layout) -> Layout:
    """Join the rows that differ only in their last header, cell by cell with slashes."""
    *heads, last = layout.heads
    together: dict[tuple[str, ...], list[tuple[str, list[Entry]]]] = {}
    for (*words, word), entries in layout.lines:
        together.setdefault(tuple(words), []).append((word, entries))
    lines = []
    for key, found in together.items():
        columns = zip(*(entries for _, entries in found), strict=True)
        lines.append((list(key), [_slashed(column) for column in columns]))
    order = " / ".join(dict.fromkeys(word for found in together.values() for word, _ in found))
    notes = [] if last == MEASURE else [f"{last}: {order}."]
    return Layout(heads, layout.columns, lines, notes)


def _slashed(entries: Sequence[Entry]) -> Entry:
    counts = [entry.count for entry in entries if entry.value != NO_VALUE] or [entries[0].count]
    count = counts[0] if len(set(counts)) == 1 else " / ".join(counts)
    return Entry(count=count, labels=entries[0].labels, parts=tuple(entries))


def _entry(record: Record, metric: Metric) -> Entry:
    n, planned = record["n"], record["planned"]
    if n > 1:  # the mean of whole numbers is none
        metric = replace(metric, digits=max(1, metric.digits))
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    if record["diverged"] == planned and not n:
        return Entry("diverged", count)
    mark = DAGGER if record["diverged"] else ""
    if not n:
        return Entry(NO_VALUE if record["finished"] == planned else NO_RESULT, count, mark=mark)
    mean, best = _rounded(record["mean"], metric), bool(record["best"])
    if n == 1:
        return Entry(mean, count, best, mark)
    low, high = (_rounded(record[end], metric) for end in ("low", "high"))
    sd, interval = f"± {_rounded(record['sd'], metric).lstrip('+')}", f"[{low}, {high}]"
    value = f"{mean} {sd} {interval}"
    return Entry(value, count, best, mark, mean=mean, sd=sd, interval=interval)


def _notes(entries: list[Entry]) -> list[str]:
    notes = []
    if any(entry.best for entry in entries):
        notes.append(
            "Bold: of at least five seeds, the best mean and all that cannot be separated from it "
            "(t-tests at 5 % with Holm's correction, paired by seed)."
        )
    if any(entry.mark for entry in entries):
        notes.append(f"{DAGGER}: {DIVERGED}")
    return notes


def _wide_notes(layout: Layout) -> list[str]:
    empty = [entry for _, line in layout.lines for entry in line if entry.value == NO_VALUE]
    meanings = [
        "not planned" if any(not entry.count for entry in empty) else "",
        "no value in these runs" if any(entry.count for entry in empty) else "",
    ]
    return [f"{NO_VALUE}: {' or '.join(filter(None, meanings))}."] if empty else []


def _paper_notes(records: list[Record], scale: str) -> list[str]:
    sources = dict.fromkeys(
        f"{record['item']} ({record['source']})" for record in records if record["item"]
    )
    notes = [
        f"Paper: {', '.join(sources)}." if sources else "",
        "Difference: measured minus paper.",
    ]
    judged = next((record for record in records if _known(record["tolerance"])), None)
    if judged:
        metric, tolerance = METRICS[judged["metric"]], judged["tolerance"]
        unit = ("point" if tolerance == 1 else "points") if metric.unit == "%" else metric.unit
        notes.append(f"Agrees: at most {tolerance:g} {unit}".rstrip() + " apart.")
    if scale != "full":
        notes.append(f"No verdict: scale {scale} is a cheaper version of the paper's runs.")
    if any(not _known(record["paper"]) or not record["n"] for record in records):
        notes.append(f"{NO_VALUE}: no value.")
    reasons = dict.fromkeys(record["doubtful"] for record in records if record["doubtful"])
    notes += [f"{DOUBLE_DAGGER} doubtful: {'; '.join(reasons)}."] if reasons else []
    return [note for note in notes if note]


def _known(value: float) -> bool:
    return value == value


def _rounded(value: float, metric: Metric) -> str:
    return f"{value * metric.scale:{'+' if metric.signed else ''}.{metric.digits}f}"
