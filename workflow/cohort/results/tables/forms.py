"""Renders a laid-out table as Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Callable

from cohort.results.series import NO_VALUE
from cohort.results.tables.layout import DAGGER, DOUBLE_DAGGER, Entry, Layout

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
}


def markdown(layout: Layout, title: str, caption: str) -> str:
    """Render a GitHub-flavored Markdown table under its title."""
    header = [*layout.heads, *layout.columns]
    lines = [
        header,
        ["---"] * len(layout.heads) + ["---" if layout.prose else "---:"] * len(layout.columns),
    ]
    lines += [[*words, *map(_markdown_entry, entries)] for words, entries in layout.lines]
    rows = "\n".join("| " + " | ".join(map(escape_markdown, line)) + " |" for line in lines)
    parts = [f"**{title}**" if title else "", caption, rows, " ".join(layout.notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(layout: Layout, title: str, caption: str) -> str:
    """Render a LaTeX table, which needs the package booktabs."""
    header = [escape_latex(word) for word in (*layout.heads, *layout.columns)]
    body = [
        [*map(escape_latex, words), *map(_latex_entry, entries)] for words, entries in layout.lines
    ]
    sentences = [part.removesuffix(".") + "." for part in (title, caption) if part]
    return (
        "\n".join(
            [
                "% \\usepackage{booktabs}",
                r"\begin{table}",
                r"\centering",
                *([rf"\caption{{{escape_latex(' '.join(sentences))}}}"] if sentences else []),
                rf"\begin{{tabular}}{{{_columns(layout)}}}",
                r"\toprule",
                " & ".join(header) + r" \\",
                r"\midrule",
                *(" & ".join(line) + r" \\" for line in body),
                r"\bottomrule",
                r"\end{tabular}",
                r"\par\smallskip\footnotesize " + escape_latex(" ".join(layout.notes)),
                r"\end{table}",
            ]
        )
        + "\n"
    )


def escape_markdown(text: str) -> str:
    """Escape what would end a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def escape_latex(text: str) -> str:
    """Escape LaTeX's special characters."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def _columns(layout: Layout) -> str:
    heads, columns = len(layout.heads), len(layout.columns)
    if not layout.prose:
        return "l" * heads + "r" * columns
    return rf"p{{{0.9 / (heads + columns):.2f}\linewidth}}" * (heads + columns)


def _markdown_entry(entry: Entry) -> str:
    return _entry(entry, "**{}**".format, str)


def _latex_entry(entry: Entry) -> str:
    return _entry(entry, r"\textbf{{{}}}".format, escape_latex)


def _entry(entry: Entry, bold: Callable[[str], str], escape: Callable[[str], str]) -> str:
    texts = []
    for piece in entry.pieces:
        value = escape(piece.value)
        texts.append((bold(value) if piece.best else value) + escape(piece.mark))
    count = f" ({entry.count})" if entry.count else ""
    more = f": {entry.more}" if entry.more else ""
    return " / ".join(texts) + escape(count + more)
