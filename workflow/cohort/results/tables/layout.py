"""A table laid out for readers: rounded and titled, the same in every format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress

from cohort.core.metric import Metric
from cohort.results.comparison import Result
from cohort.results.names import METRICS
from cohort.results.series import NO_VALUE

DAGGER, DOUBLE_DAGGER = "†", "‡"
DIVERGED = (
    "a run diverged; it counts with the worst value: the lowest accuracy, chance level at "
    "most, the largest loss, never for a target."
)
NO_RESULT_YET = "no result yet"


@dataclass(frozen=True)
class Entry:
    """One cell: `value` (bold if `best`), footnote `mark`, `count` in parentheses, `more` text.

    The value of several runs is their mean, with its deviation `sd` and `interval`; `labels` say of
    which runs it is. A cell of several results has `parts`, each an entry of its own. `paper` is
    the paper's value, with the `difference` from it and the `verdict` on that.
    """

    value: str = ""
    count: str = ""
    best: bool = False
    mark: str = ""
    more: str = ""
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

    @property
    def has_runs(self) -> bool:
        """Whether there is a result of our runs."""
        return any(piece.value not in ("", NO_VALUE, NO_RESULT_YET) for piece in self.pieces)

    @property
    def has_paper(self) -> bool:
        """Whether there is a value of the paper."""
        return any(piece.paper for piece in self.pieces)

    @property
    def is_empty(self) -> bool:
        """Whether there is no number."""
        return not (self.has_runs or self.has_paper)


@dataclass(frozen=True)
class Layout:
    """A table whose lines have a text for each of `heads` and an entry for each of `columns`.

    `constants` say what is the same in all lines. The cells of a `prose` table are texts that may
    need several lines.
    """

    heads: list[str]
    columns: list[str]
    lines: list[tuple[list[str], list[Entry]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    prose: bool = False

    @property
    def everywhere(self) -> str:
        """The sentence on the constants."""
        return f"Everywhere: {', '.join(self.constants)}." if self.constants else ""

    def condensed(self) -> Layout:
        """Without the rows and columns that have no number, and with what all rows share as a
        constant."""
        rows = [line for line in self.lines if not _are_empty(line[1])]
        by_head = zip(*(words for words, _ in rows), strict=True)
        by_column = zip(*(entries for _, entries in rows), strict=True)
        has_number = [not _are_empty(entries) for entries in by_column]
        varies = [len(set(words)) > 1 for words in by_head]
        varies = varies if any(varies) else [index == 0 for index in range(len(varies))]
        count, lines = _shared_count(rows), []
        for words, entries in rows:
            kept = [_without(count, entry) for entry in compress(entries, has_number)]
            lines.append((list(compress(words, varies)), kept))
        same = zip(self.heads, rows[0][0] if rows else self.heads, varies, strict=False)
        constants = [f"{head} {word}" for head, word, is_varied in same if not is_varied]
        constants += [f"{count} run{'' if count == '1' else 's'}"] if count else []
        left_out = len(self.lines) - len(rows)
        notes = [f"Rows without any number are left out ({left_out})."] if left_out else []
        return Layout(
            list(compress(self.heads, varies)),
            list(compress(self.columns, has_number)),
            lines,
            [*notes, *self.notes],
            constants,
        )


def rounded(value: float, metric: Metric) -> str:
    """A value of a metric as text, in its unit and with its digits."""
    sign = "+" if metric.signed else ""
    return NO_VALUE if math.isnan(value) else f"{value * metric.scale:{sign}.{metric.digits}f}"


def short_titles(measures: Mapping[str, list[Result]]) -> list[str]:
    """The titles of measures without where they were taken, if that tells them apart."""
    short = [METRICS[results[0].metric].label for results in measures.values()]
    return short if len(set(short)) == len(short) else list(measures)


def _shared_count(lines: Iterable[tuple[list[str], list[Entry]]]) -> str:
    """The number of runs of every entry with a number, if that is the same and none is missing."""
    counts = {entry.count for _, entries in lines for entry in entries if not entry.is_empty}
    return counts.pop() if len(counts) == 1 and min(counts).isdigit() else ""


def _are_empty(entries: Iterable[Entry]) -> bool:
    return all(entry.is_empty for entry in entries)


def _without(count: str, entry: Entry) -> Entry:
    return replace(entry, count="") if entry.count == count else entry
