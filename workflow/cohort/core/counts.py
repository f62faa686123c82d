"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 run`, `2,661 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
