"""Lays out a table for readers: titles, rounded numbers and notes, the same in every format.

A table has a column per value of one label; a comparison with a paper has a row per result instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cohort.core.metric import Metric
from cohort.results.comparison import Comparison, Result
from cohort.results.names import METRICS, Names
from cohort.results.series import FULL, GENERATED, NO_VALUE

DAGGER, DOUBLE_DAGGER = "†", "‡"
DIVERGED = (
    "a run diverged; it counts with the worst value: chance level for an accuracy, the largest for "
    "a loss, never for a target."
)
NO_RESULT_YET = "no result yet"
AGREEMENT = (
    "Agrees: the 90 % interval of the difference lies within {margin}; differs: its 95 % interval "
    "lies outside."
)
MEASURE = "Measure"  # the head of a column of them


@dataclass(frozen=True)
class Entry:
    """One cell: `value` (bold if `best`), footnote `mark`, `count` in parentheses, `more` text.

    `mean`, `sd` and `interval` are the parts of a value of several runs; `labels` say of which runs
    it is. A cell of several results has `parts`, each with a value and a mark of its own. `paper`
    is the paper's value, with the `difference` from it and the `verdict` on that.
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
    paper: Entry | None = None
    difference: str = ""
    verdict: str = ""

    @property
    def pieces(self) -> tuple[Entry, ...]:
        """The entries that are separated by slashes: the parts, or the cell itself."""
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
    comparison: Comparison, names: Names, *, slash_joined: bool = False, wide: bool = False
) -> Layout:
    """Lay out the results of a comparison as a table, in their order.

    `slash_joined` puts the measures, or else the values of the last label, into one row, separated
    by slashes. A `wide` table has them in columns, with the paper's value within each cell.
    """
    results = comparison.results
    if not results:
        return Layout([], [], notes=["Nothing of it is planned at this scale."])
    measures = comparison.by_measure()
    entries = [replace(_entry(result), labels=result.labels) for result in results]
    wide = wide or not comparison.has_paper
    if wide and comparison.has_paper:
        entries = list(map(_beside_paper, results, entries))
    layout = (_column_per_value if wide else _row_per_result)(results, entries, names, measures)
    if slash_joined := slash_joined and not wide:
        layout = _joined(layout)
    layout.notes.append(
        f"{(' / ' if slash_joined else '; ').join(measures)}: mean ± standard deviation over seeds "
        "[95 % interval of the mean] (number of runs)."
    )
    layout.notes.extend(_notes(entries))
    layout.notes.extend(_paper_notes(comparison) if comparison.has_paper else _wide_notes(layout))
    layout.notes.extend([GENERATED.capitalize() + "."] if comparison.generated else [])
    return layout


def _column_per_value(
    results: Sequence[Result], entries: Sequence[Entry], names: Names, measures: Iterable[str]
) -> Layout:
    """Lay out a column per value of the last label, or per measure if there are several."""
    labels = list(results[0].labels)
    *rows, across = labels
    columns = names.ordered(across, (result.labels[across] for result in results))
    titles = [names.value(across, column) for column in columns]
    if several := len(list(measures)) > 1:
        rows, columns = labels, list(measures)
        short = list(dict.fromkeys(METRICS[result.metric].label for result in results))
        titles = short if len(short) == len(columns) else columns
    lines: dict[tuple[str, ...], dict[str, Entry]] = {}
    for result, entry in zip(results, entries, strict=True):
        line = lines.setdefault(tuple(result.labels[row] for row in rows), {})
        line[result.measure if several else result.labels[across]] = entry
    layout = Layout([names.title(row) for row in rows], titles)
    for key, line in lines.items():
        words = [names.value(row, value) for row, value in zip(rows, key, strict=True)]
        layout.lines.append((words, [line.get(column, Entry(NO_VALUE)) for column in columns]))
    return layout


def _row_per_result(
    results: Sequence[Result], entries: Sequence[Entry], names: Names, measures: Iterable[str]
) -> Layout:
    """Lay out a row per result with the columns Paper, Measured and Difference, and Verdict if any
    result has one."""
    several, judged = len(list(measures)) > 1, any(result.verdict for result in results)
    columns = ["Paper", "Measured", "Difference", *(["Verdict"] if judged else [])]
    heads = [*map(names.title, results[0].labels), *([MEASURE] if several else [])]
    layout = Layout(heads, columns)
    for result, entry in zip(results, entries, strict=True):
        words = [names.value(label, value) for label, value in result.labels.items()]
        words += [result.measure] if several else []
        line = [_paper_entry(result), entry, Entry(_difference(result))]
        layout.lines.append(
            (words, [*line, *([Entry(result.verdict or NO_VALUE)] if judged else [])])
        )
    return layout


def _paper_entry(result: Result) -> Entry:
    """The table cell of the paper's value: with ± its deviation if there is one, and a mark if it
    is doubtful."""
    paper, metric = result.paper, METRICS[result.metric]
    if paper is None:
        return Entry(NO_VALUE)
    sd = "" if paper.sd is None else f" ± {_rounded(paper.sd, metric).lstrip('+')}"
    return Entry(_rounded(paper.value, metric) + sd, mark=DOUBLE_DAGGER if paper.doubtful else "")


def _beside_paper(result: Result, entry: Entry) -> Entry:
    """The entry of our result, with the paper's value if it has one."""
    if result.paper is None:
        return entry
    printed, difference = _paper_entry(result), _difference(result) if result.values else ""
    value, _, sd = printed.value.partition(" ± ")
    paper = replace(printed, value=value, sd=sd)
    return replace(entry, paper=paper, difference=difference, verdict=result.verdict)


def _difference(result: Result) -> str:
    """Our mean less the paper's value, as text in the unit shown."""
    metric = METRICS[result.metric]
    if result.paper is None or not result.values:
        return NO_VALUE
    # Adding 0.0 makes -0.0 a plain 0.
    return f"{round(result.difference * metric.scale, metric.digits) + 0.0:+.{metric.digits}f}"


def _joined(layout: Layout) -> Layout:
    """Join the rows that differ only in their last header, cell by cell with slashes."""
    *heads, last = layout.heads
    joined: dict[tuple[str, ...], list[tuple[str, list[Entry]]]] = {}
    for (*words, word), entries in layout.lines:
        joined.setdefault(tuple(words), []).append((word, entries))
    lines = []
    for key, rows in joined.items():
        columns = zip(*(entries for _, entries in rows), strict=True)
        lines.append((list(key), [_slashed(column) for column in columns]))
    order = " / ".join(dict.fromkeys(word for rows in joined.values() for word, _ in rows))
    notes = [] if last == MEASURE else [f"{last}: {order}."]
    return Layout(heads, layout.columns, lines, notes)


def _slashed(entries: Sequence[Entry]) -> Entry:
    counts = [entry.count for entry in entries if entry.value != NO_VALUE] or [entries[0].count]
    count = counts[0] if len(set(counts)) == 1 else " / ".join(counts)
    return Entry(count=count, labels=entries[0].labels, parts=tuple(entries))


def _entry(result: Result) -> Entry:
    n, planned, sample, metric = (
        len(result.values),
        result.planned,
        result.sample,
        METRICS[result.metric],
    )
    if n > 1:  # the mean of whole numbers is none
        metric = replace(metric, digits=max(1, metric.digits))
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    if result.diverged == planned and not n:
        return Entry("diverged", count)
    mark = DAGGER if result.diverged else ""
    if not n:
        return Entry(NO_VALUE if result.finished == planned else NO_RESULT_YET, count, mark=mark)
    mean = _rounded(sample.mean, metric)
    if n == 1:
        return Entry(mean, count, result.best, mark)
    low, high = (_rounded(end, metric) for end in result.interval)
    sd, interval = f"± {_rounded(sample.sd, metric).lstrip('+')}", f"[{low}, {high}]"
    value = f"{mean} {sd} {interval}"
    return Entry(value, count, result.best, mark, mean=mean, sd=sd, interval=interval)


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


def _paper_notes(comparison: Comparison) -> list[str]:
    results = comparison.results
    papers = [result.paper for result in results if result.paper]
    sources = dict.fromkeys(f"{paper.item} ({paper.source})" for paper in papers)
    notes = [f"Paper: {', '.join(sources)}."] if sources else []
    notes.append("Difference: measured minus paper.")
    margins = dict.fromkeys(_margin(result) for result in results if result.margin is not None)
    if margins:
        notes.append(AGREEMENT.format(margin=" or ".join(margins)))
    if comparison.scale != FULL:
        notes.append(
            f"No verdict: scale {comparison.scale} is a cheaper version of the paper's runs."
        )
    if any(result.paper is None or not result.values for result in results):
        notes.append(f"{NO_VALUE}: no value.")
    reasons = dict.fromkeys(paper.doubtful for paper in papers if paper.doubtful)
    return notes + ([f"{DOUBLE_DAGGER} doubtful: {'; '.join(reasons)}."] if reasons else [])


def _margin(result: Result) -> str:
    """The largest difference that agrees, as text with its unit."""
    unit = METRICS[result.metric].unit
    unit = ("point" if result.margin == 1 else "points") if unit == "%" else unit
    return f"{result.margin:g} {unit}".rstrip()


def _rounded(value: float, metric: Metric) -> str:
    return f"{value * metric.scale:{'+' if metric.signed else ''}.{metric.digits}f}"
