"""LEAF's Shakespeare in small: a text in the form of Gutenberg's, and the table that Flower Labs cut from it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

HEAD = """The Project Gutenberg EBook of The Complete Works of William Shakespeare, by
William Shakespeare

1609

THE SONNETS

by William Shakespeare

  POET. This role stands before the plays
  POET. and is not among them,
  POET. because they begin later.
"""


def gutenberg(plays: Mapping[str, Iterable[str]]) -> str:
    """Each play's title, two lines above the author, and its lines."""
    parts = [
        f"\n1600\n\n{title}\n\nby William Shakespeare\n\n\n" + "".join(f"{line}\n" for line in lines) for title, lines in plays.items()
    ]
    return HEAD + "\n\n".join(["", *parts])


def samples(said: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """User, 80 characters and the next one, user by user."""
    return [(user, text[begin : begin + 80], text[begin + 80]) for user, text in said.items() for begin in range(len(text) - 80)]


def table(rows: Iterable[Iterable[str]]) -> str:
    """As pandas writes it."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([("character_id", "x", "y"), *rows])
    return file.getvalue()
