"""A table laid out for readers, rounded and titled, as Markdown and LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from textwrap import fill

from cohort.core.metric import Metric
from cohort.core.text import counted
from cohort.results.comparison import Result
from cohort.results.names import METRICS
from cohort.results.series import NO_VALUE

DAGGER, DOUBLE_DAGGER = "†", "‡"
DIVERGED = (
    "a run diverged; it counts with the worst value: the lowest accuracy, chance level at "
    "most, the largest loss, never for a target."
)
NO_RESULT_YET = "no result yet"
SLASH = " / "
WIDE = 5  # columns
LONGEST = 18  # letters of a line of a column's title
MINUS = re.compile(r"(?<![\w-])-(?=\d|\$\\infty)")
BOLD = re.compile(r"\*\*(.+?)\*\*")
LATEX = {letter: f"\\{letter}" for letter in "{}&%$#_"}
LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "✗": r"$\times$"}
LATEX |= {NO_VALUE: "--", DAGGER: r"$^\dagger$", DOUBLE_DAGGER: r"$^\ddagger$", "∞": r"$\infty$"}


@dataclass(frozen=True)
class Entry:
    """A cell as text: our `value`, between ** if it is the best, with the number of runs (`count`)
    and its `interval`, then the paper's value and the `verdict` on the difference. Several results
    in one cell are separated by slashes. `labels` say of which runs it is."""

    value: str = ""
    count: str = ""
    more: str = ""
    interval: str = ""
    paper: str = ""
    verdict: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_runs(self) -> bool:
        """Whether there is a result of our runs."""
        values = {value.rstrip(DAGGER) for value in self.value.split(SLASH)}
        return bool(values - {"", NO_VALUE, NO_RESULT_YET})

    @property
    def is_empty(self) -> bool:
        """Whether there is no number."""
        return not (self.has_runs or self.paper)

    @property
    def lines(self) -> list[str]:
        """What a reader sees in the cell, line by line."""
        count = f" ({self.count})" if self.count else ""
        more = f": {self.more}" if self.more else ""
        ours = [f"{self.value}{count}{more}", self.interval]
        paper = f"paper {self.paper}" if self.paper else ""
        shown = [*(ours if self.has_runs or not paper else []), paper, self.verdict]
        return [line for line in shown if line]


def slashed(entries: Sequence[Entry]) -> Entry:
    """Several results in one cell."""
    counts = [entry.count for entry in entries if entry.has_runs] or [entries[0].count]
    return Entry(
        SLASH.join(entry.value for entry in entries),
        counts[0] if len(set(counts)) == 1 else SLASH.join(counts),
        paper=_joined([entry.paper for entry in entries]),
        verdict=_joined([entry.verdict for entry in entries]),
        labels=entries[0].labels,
    )


def _joined(texts: Sequence[str]) -> str:
    """The texts separated by slashes, a dash for an empty one; empty if all are."""
    return SLASH.join(text or NO_VALUE for text in texts) if any(texts) else ""


def _are_empty(entries: Iterable[Entry]) -> bool:
    return all(entry.is_empty for entry in entries)


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
        words, entries = zip(*rows, strict=True) if rows else ((), ())
        has_number = [not _are_empty(column) for column in zip(*entries, strict=True)]
        varies = [len(set(column)) > 1 for column in zip(*words, strict=True)]
        varies = varies if any(varies) else [index == 0 for index in range(len(varies))]
        counts = {entry.count for line in entries for entry in line if not entry.is_empty}
        count = counts.pop() if len(counts) == 1 and min(counts).isdigit() else ""
        lines = []
        for line_words, line in rows:
            shown = list(compress(line, has_number))
            if count:
                shown = [replace(it, count="") if it.count == count else it for it in shown]
            lines.append((list(compress(line_words, varies)), shown))
        same = zip(self.heads, rows[0][0] if rows else self.heads, varies, strict=False)
        constants = [f"{head} {word}" for head, word, is_varied in same if not is_varied]
        constants += [counted(int(count), "run")] if count else []
        left_out = len(self.lines) - len(rows)
        notes = [f"Rows without any number are left out ({left_out})."] if left_out else []
        heads, columns = compress(self.heads, varies), compress(self.columns, has_number)
        return Layout([*heads], [*columns], lines, [*notes, *self.notes], constants)


def rounded(value: float, metric: Metric) -> str:
    """A value of a metric as text, in its unit and with its digits."""
    sign = "+" if metric.signed else ""
    return NO_VALUE if math.isnan(value) else f"{value * metric.scale:{sign}.{metric.digits}f}"


def short_titles(measures: Mapping[str, list[Result]]) -> list[str]:
    """The titles of measures without where they were taken, if that tells them apart."""
    short = [METRICS[results[0].metric].label for results in measures.values()]
    return short if len(set(short)) == len(short) else list(measures)


def markdown(layout: Layout, title: str, caption: str) -> str:
    """Render a GitHub-flavored Markdown table under its title."""
    rules = ["---"] * len(layout.heads) + ["---" if layout.prose else "---:"] * len(layout.columns)
    lines = [[*layout.heads, *layout.columns], rules]
    for words, entries in layout.lines:
        lines.append([*words, *("<br>".join(entry.lines) for entry in entries)])
    rows = "\n".join("| " + " | ".join(map(escape_markdown, line)) + " |" for line in lines)
    parts = [
        f"**{title}**" if title else "",
        " ".join(filter(None, (caption, layout.everywhere))),
        rows if layout.lines else "",
        " ".join(layout.notes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(layout: Layout, title: str, caption: str) -> str:
    """Render a LaTeX table, which needs the package booktabs; a wide one spans both columns of a
    page, and one of prose, which needs longtable, several pages."""
    heads, columns = len(layout.heads), len(layout.columns)
    titles = (map(escape_latex, fill(word, LONGEST).splitlines()) for word in layout.columns)
    header = [*map(escape_latex, layout.heads), *map(_stacked, titles)]
    body = [
        [*map(escape_latex, words), *map(_latex_entry, entries)] for words, entries in layout.lines
    ]
    sentences = [f"{it.removesuffix('.')}." for it in (title, caption, layout.everywhere) if it]
    text = [rf"\caption{{{escape_latex(' '.join(sentences))}}}"] if sentences else []
    outer, kind = "table" if columns < WIDE else "table*", "tabular"
    aligned = "l" * heads + "r" * columns or "l"
    if layout.prose:
        outer, kind, text = "footnotesize", "longtable", [rf"{line} \\" for line in text]
        aligned = rf"p{{{0.9 / (heads + columns):.2f}\linewidth}}" * (heads + columns)
    begin = [rf"\begin{{{kind}}}{{{aligned}}}"]
    lines = [
        rf"% \usepackage{{booktabs{',longtable' if layout.prose else ''}}}",
        rf"\begin{{{outer}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        *([*begin, *text] if layout.prose else [*text, *begin]),
        r"\toprule",
        " & ".join(header) + r" \\",
        r"\midrule",
        *([r"\endhead"] if layout.prose else []),
        *(" & ".join(line) + r" \\" for line in body),
        r"\bottomrule",
        rf"\end{{{kind}}}",
        r"\par\smallskip " + escape_latex(" ".join(layout.notes)),
        rf"\end{{{outer}}}",
    ]
    return "\n".join(lines) + "\n"


def escape_markdown(text: str) -> str:
    """Escape what would end a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def escape_latex(text: str) -> str:
    """Escape LaTeX's special characters; a minus is not a hyphen."""
    return MINUS.sub("$-$", "".join(LATEX.get(letter, letter) for letter in text))


def _latex_entry(entry: Entry) -> str:
    first, *others = (BOLD.sub(r"\\textbf{\1}", escape_latex(line)) for line in entry.lines or [""])
    return _stacked([first, *(rf"\scriptsize {line}" for line in others)])


def _stacked(lines: Iterable[str]) -> str:
    """Lines of LaTeX one below the other in one cell."""
    stacked = r" \\ ".join(lines)
    return rf"\shortstack[r]{{{stacked}}}" if r" \\ " in stacked else stacked
