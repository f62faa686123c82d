"""Lays out a comparison as papers print tables.

The values of the last label are the columns, or the measures if there are several. A cell holds
our value and the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

from cohort.results.comparison import Comparison, Result
from cohort.results.intervals import Verdict
from cohort.results.names import METRICS, Names, listed
from cohort.results.paper import doubts
from cohort.results.series import FULL, GENERATED, NO_VALUE
from cohort.results.tables.layout import (
    DAGGER,
    DIVERGED,
    DOUBLE_DAGGER,
    NO_RESULT_YET,
    Entry,
    Layout,
    rounded,
    short_titles,
)

AGREEMENT = (
    "Agrees: the 90 % interval of the difference lies within 2 points, near 0 and 100 % within "
    "half of the distance to them; differs: its 95 % interval lies outside."
)
MEASURE = "Measure"  # the head of a column of them
NO_VALUE_MEANS = {False: "not planned", True: "no value in these runs"}  # whether runs are counted
NOTHING = "Nothing of it is planned at this scale."


def lay_out(comparison: Comparison, names: Names, *, joined: bool = False) -> Layout:
    """Lay out the results of a table in their order.

    `joined` puts the measures, or else the values of the last label, into one cell, separated by
    slashes, and those of the label before in columns.
    """
    results = comparison.results
    if not results:
        return Layout([], [], notes=comparison.description or [NOTHING])
    measures = comparison.by_measure()
    entries = list(map(_entry, results))
    layout = _table(comparison, entries, names, joined=joined).condensed()
    separator = " / " if joined else "; "
    measured = "" if set(layout.columns) <= set(measures) else f"{separator.join(measures)}: "
    interval = "" if joined else "[95 % interval of the mean] "
    seeds = sorted(set().union(*(result.values for result in results)))
    note = f"{measured}mean ± standard deviation over seeds {interval}(number of runs)."
    if seeds and all(len(result.values) < 2 for result in results):
        note = f"{measured}of seed{'s' if len(seeds) > 1 else ''} {listed(seeds)}."
    layout.notes.append(note[0].upper() + note[1:])
    layout.notes.extend([*comparison.description, *_notes(entries)])
    layout.notes.extend(_paper_notes(comparison) if comparison.has_paper else [])
    layout.notes.extend(_dash_notes(layout))
    layout.notes.extend([GENERATED.capitalize() + "."] if comparison.generated else [])
    return layout


def _table(
    comparison: Comparison, entries: Sequence[Entry], names: Names, *, joined: bool
) -> Layout:
    """The values of the last label across; the measures are another label if there are several."""
    results, measures = comparison.results, comparison.by_measure()
    labels = [*results[0].labels, *([MEASURE] if len(measures) > 1 else [])]
    cells = {
        tuple([*result.labels.values(), result.measure][: len(labels)]): entry
        for result, entry in zip(results, entries, strict=True)
    }

    def ordered(label: str) -> list[str]:
        if label == MEASURE:
            return list(measures)
        return names.ordered(label, (result.labels[label] for result in results))

    notes = []
    if joined and len(labels) > 1:
        *labels, last = labels
        parts = ordered(last)
        cells = {row: _slashed(line) for row, line in _lines(cells, parts).items()}
        words = " / ".join(names.value(last, part) for part in parts)
        notes += [] if last == MEASURE else [f"{names.title(last)}: {words}."]
    *heads, across = labels
    columns = ordered(across)
    lines = [
        (list(map(names.value, heads, row)), line) for row, line in _lines(cells, columns).items()
    ]
    titles = [names.value(across, column) for column in columns]
    titles = short_titles(measures) if across == MEASURE else titles
    return Layout([*map(names.title, heads)], titles, lines, notes)


def _lines(
    cells: Mapping[tuple[str, ...], Entry], columns: Sequence[str]
) -> dict[tuple[str, ...], list[Entry]]:
    """The cells of each row, which is all of a key but its last value, by their columns."""
    rows: dict[tuple[str, ...], list[Entry]] = {}
    for *row, _ in cells:
        line = (cells.get((*row, column), Entry(NO_VALUE)) for column in columns)
        rows.setdefault(tuple(row), list(line))
    return rows


def _slashed(entries: Sequence[Entry]) -> Entry:
    counts = [entry.count for entry in entries if entry.has_runs] or [entries[0].count]
    count = counts[0] if len(set(counts)) == 1 else " / ".join(counts)
    return Entry(count=count, labels=entries[0].labels, parts=tuple(entries))


def _entry(result: Result) -> Entry:
    """Our value of a result beside the paper's."""
    entry = replace(_measured(result), labels=result.labels)
    if result.paper is None:
        return entry
    paper, metric = result.paper, METRICS[result.metric]
    difference = round(result.difference * metric.scale, metric.digits) + 0.0  # -0.0 is a plain 0
    return replace(
        entry,
        paper=Entry(
            rounded(paper.value, metric),
            sd="" if paper.sd is None else f"± {rounded(paper.sd, metric).lstrip('+')}",
            mark=DOUBLE_DAGGER if paper.doubtful else "",
        ),
        difference=f"{difference:+.{metric.digits}f}" if result.values else "",
        verdict=result.verdict if result.verdict in get_args(Verdict) else "",
    )


def _measured(result: Result) -> Entry:
    n, planned, metric = len(result.values), result.planned, METRICS[result.metric]
    if n > 1:  # the mean of whole numbers is none
        metric = replace(metric, digits=max(1, metric.digits))
    count = f"{n}" if n == planned else f"n = {n} of {planned}"
    if result.diverged == planned and not n:
        return Entry("diverged", count)
    mark = DAGGER if result.diverged else ""
    if not n:
        return Entry(NO_VALUE if result.finished == planned else NO_RESULT_YET, count, mark=mark)
    mean = rounded(result.sample.mean, metric)
    if n == 1:
        return Entry(mean, count, result.best, mark)
    low, high = (rounded(end, metric) for end in result.interval)
    sd, interval = f"± {rounded(result.sample.sd, metric).lstrip('+')}", f"[{low}, {high}]"
    return Entry(mean, count, result.best, mark, sd=sd, interval=interval)


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


def _dash_notes(layout: Layout) -> list[str]:
    pieces = [piece for _, line in layout.lines for entry in line for piece in entry.pieces]
    counted = {bool(piece.count) for piece in pieces if piece.value == NO_VALUE}
    meanings = [NO_VALUE_MEANS[is_counted] for is_counted in sorted(counted)]
    return [f"{NO_VALUE}: {' or '.join(meanings)}."] if meanings else []


def _paper_notes(comparison: Comparison) -> list[str]:
    results = comparison.results
    papers = [result.paper for result in results if result.paper]
    sources = dict.fromkeys(f"{paper.item} ({paper.source})" for paper in papers)
    notes = [f"Paper: {', '.join(sources)}."] if sources else []
    notes.append("In parentheses after the paper's value: measured minus paper.")
    if any(result.agreement for result in results):
        notes.append(AGREEMENT)
    if comparison.scale != FULL:
        notes.append(
            f"No verdict: scale {comparison.scale} is a cheaper version of the paper's runs."
        )
    reasons = doubts(paper.doubtful for paper in papers)
    return notes + ([f"{DOUBLE_DAGGER} doubtful: {reasons}."] if reasons else [])
