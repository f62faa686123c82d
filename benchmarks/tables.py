"""Sections, goals, tables and numbers in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.sweeps import Summary

NOTHING = "-"


@dataclass(frozen=True)
class Goal:
    """A bound on a measured value: a minimum if `at_least`, else a maximum."""

    text: str
    bound: float
    measured: float | None
    at_least: bool = True

    @property
    def verdict(self) -> str:
        """Whether the bound is reached."""
        if self.measured is None:
            return "not measured"
        is_reached = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        return "reached" if is_reached else "not reached"


@dataclass
class Section:
    """The results of one part of the benchmark: paragraphs, goals and failures."""

    title: str
    text: list[str] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """The section in Markdown."""
        rows = [
            [goal.text, _bound(goal), number(goal.measured), f"**{goal.verdict}**"]
            for goal in self.goals
        ]
        goals = [table(["goal", "bound", "measured", "verdict"], rows)] if rows else []
        failures = ["\n".join(f"- {line}" for line in self.failures)] if self.failures else []
        return "\n\n".join([f"## {self.title}", *self.text, *goals, *failures]) + "\n"


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


def seconds(summary: Summary, unit: float = 1.0) -> list[str]:
    """Format median, minimum and interquartile range as three table cells."""
    low, high = summary.quarters
    return [
        number(summary.median / unit),
        number(summary.minimum / unit),
        f"{number(low / unit)} to {number(high / unit)}",
    ]


def _bound(goal: Goal) -> str:
    return f"{'≥' if goal.at_least else '≤'} {goal.bound:g}"
