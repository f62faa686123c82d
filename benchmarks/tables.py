"""Sections, tables and numbers in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

NOTHING = "-"


@dataclass
class Section:
    """The results of one part of the benchmark: paragraphs and failures."""

    title: str
    text: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """The section in Markdown."""
        failures = ["\n".join(f"- {line}" for line in self.failures)] if self.failures else []
        return "\n\n".join([f"## {self.title}", *self.text, *failures]) + "\n"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table with aligned columns."""
    lines = [list(titles), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    padded = [f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines]
    return "\n".join([padded[0], rule, *padded[1:]])


def number(value: float | None, digits: int = 3) -> str:
    """Format a value with this many significant digits; None becomes a dash."""
    if value is None:
        return NOTHING
    if value and abs(value) < 1e-3:
        return f"{value:.1e}"
    return (
        f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:#.{digits}g}".rstrip(".")
    )


def put_section(text: str, name: str, section: str, command: str = "make bench") -> str:
    """Return a page's text with this section between its markers, which are appended if missing."""
    begin, end = f"<!-- {name}: made by `{command}` -->", f"<!-- end of {name} -->"
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n".lstrip()
    before, _, rest = text.partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"the page lacks the marker '{end}'; put it after section {name}")
    return f"{before}{begin}\n{section.strip()}\n{end}{after}"
