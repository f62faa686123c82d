"""Renders a laid-out table as Markdown or LaTeX."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from textwrap import fill

from cohort.results.series import NO_VALUE
from cohort.results.tables.layout import DAGGER, DOUBLE_DAGGER, Entry, Layout

Style = Callable[[str], str]
WIDE = 5  # columns
LONGEST = 18  # letters of a line of a column's title
MINUS = re.compile(r"(?<![\w-])-(?=\d|\$\\infty)")
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    NO_VALUE: "--",
    DAGGER: r"$^\dagger$",
    DOUBLE_DAGGER: r"$^\ddagger$",
    "✗": r"$\times$",
    "∞": r"$\infty$",
}


def markdown(layout: Layout, title: str, caption: str) -> str:
    """Render a GitHub-flavored Markdown table under its title."""
    rules = ["---"] * len(layout.heads) + ["---" if layout.prose else "---:"] * len(layout.columns)
    lines = [[*layout.heads, *layout.columns], rules]
    lines += [[*words, *map(_markdown_entry, entries)] for words, entries in layout.lines]
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
    header = [*map(escape_latex, layout.heads), *map(_latex_title, layout.columns)]
    body, above = [], [""] * len(layout.heads)
    for words, entries in layout.lines:
        body.append([*map(escape_latex, _unrepeated(words, above)), *map(_latex_entry, entries)])
        above = words
    parts = (title, caption, layout.everywhere)
    sentences = [part.removesuffix(".") + "." for part in parts if part]
    captions = [rf"\caption{{{escape_latex(' '.join(sentences))}}}"] if sentences else []
    if layout.prose:
        outer, kind, packages = "footnotesize", "longtable", "booktabs,longtable"
    else:
        outer, kind, packages = "table", "tabular", "booktabs"
        outer += "" if len(layout.columns) < WIDE else "*"
    begin = rf"\begin{{{kind}}}{{{_columns(layout)}}}"
    lines = [
        rf"% \usepackage{{{packages}}}",
        rf"\begin{{{outer}}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        *([begin, *(f"{text} \\\\" for text in captions)] if layout.prose else [*captions, begin]),
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


def _latex_title(word: str) -> str:
    return _stacked(list(map(escape_latex, fill(word, LONGEST).splitlines())), "b")


def _columns(layout: Layout) -> str:
    heads, columns = len(layout.heads), len(layout.columns)
    if not layout.prose:
        return "l" * heads + "r" * columns or "l"
    return rf"p{{{0.9 / (heads + columns):.2f}\linewidth}}" * (heads + columns)


def _unrepeated(words: Sequence[str], above: Sequence[str]) -> list[str]:
    """The words of a line, without those that it begins with as the line above does."""
    same = [*map(operator.eq, words, above), False].index(False)
    same = min(same, len(words) - 1)
    return [""] * same + list(words[same:])


def _markdown_entry(entry: Entry) -> str:
    return "<br>".join(_entry_lines(entry, "**{}**".format, str))


def _latex_entry(entry: Entry) -> str:
    first, *others = _entry_lines(entry, r"\textbf{{{}}}".format, escape_latex)
    return _stacked([first, *(rf"\scriptsize {line}" for line in others)], "t")


def _stacked(lines: Sequence[str], end: str) -> str:
    """Lines of LaTeX one below the other in one cell, aligned with others at the top or bottom."""
    if len(lines) < 2:
        return "".join(lines)
    return rf"\begin{{tabular}}[{end}]{{@{{}}r@{{}}}}" + r" \\ ".join(lines) + r"\end{tabular}"


def _entry_lines(entry: Entry, bold: Style, escape: Style) -> list[str]:
    """Our value, its interval, the paper's value and the verdict, as far as there are any."""
    lines = []
    if entry.has_runs or not entry.has_paper:
        values = " / ".join(_value(piece, bold, escape) for piece in entry.pieces)
        count = f" ({entry.count})" if entry.count else ""
        more = f": {entry.more}" if entry.more else ""
        lines += [values + escape(count + more), escape(entry.interval)]
    if entry.has_paper:
        lines.append("paper " + " / ".join(_paper(piece, escape) for piece in entry.pieces))
    if any(piece.verdict for piece in entry.pieces):
        lines.append(" / ".join(escape(piece.verdict or NO_VALUE) for piece in entry.pieces))
    return [line for line in lines if line]


def _value(entry: Entry, bold: Style, escape: Style) -> str:
    value = escape(entry.value)
    return (bold(value) if entry.best else value) + escape(f"{entry.mark} {entry.sd}".rstrip())


def _paper(entry: Entry, escape: Style) -> str:
    if entry.paper is None:
        return escape(NO_VALUE)
    difference = escape(f"({entry.difference})") if entry.difference else ""
    return f"{_value(entry.paper, str, escape)} {difference}".rstrip()
