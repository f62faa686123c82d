"""LEAF's Shakespeare: 80 characters that a role says and the one that follows, from the text itself
or from a published table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cohort.core.errors import UserError
from cohort.core.randomness import generator
from cohort.data.parsers.gutenberg import role_of, text_by_role
from cohort.data.parsers.parser import Parser
from cohort.data.split import Blocks, Split

LENGTH = 80
CHARACTERS = " !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""All that occur. They are numbered from 1 if 0 is reserved for padding."""
TEST_SHARE = 1 / 20  # drawn from all samples, as in AML's federated study
BLOCK = 1 << 16  # samples
COLUMNS = ["character_id", "x", "y"]

Piece = tuple[str, str]
"""A user and a text that it says, at least 81 characters long."""


@dataclass(frozen=True, kw_only=True)
class Shakespeare(Parser):
    """Parses LEAF's Shakespeare samples from the text of the plays."""

    name: ClassVar[str] = "shakespeare"
    first: ClassVar[int] = 1  # the number of the first character
    test_share: ClassVar[float] = TEST_SHARE

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "raw_data.txt"
        pieces = [(user, text) for user, text in text_by_role(path).items() if len(text) > LENGTH]
        return _splits(pieces, path, self.first, self.test_share)


@dataclass(frozen=True, kw_only=True)
class ShakespeareCentral(Shakespeare):
    """Parses Shakespeare as in AML's centralized study: characters are numbered from 0, because
    there is no padding, and a tenth is for testing."""

    name: ClassVar[str] = "shakespeare-central"
    first: ClassVar[int] = 0
    test_share: ClassVar[float] = 1 / 10


@dataclass(frozen=True, kw_only=True)
class ShakespeareCsv(Parser):
    """Parses LEAF's Shakespeare samples from the table that Flower Labs publishes."""

    name: ClassVar[str] = "shakespeare-csv"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "shakespeare.csv"
        return _splits(list(_pieces(path)), path)


def _splits(
    pieces: list[Piece], path: Path, first: int = 1, test_share: float = TEST_SHARE
) -> tuple[Split, Split]:
    """Training and test samples: all windows of 80 characters and the next one, by user name."""
    pieces = sorted(pieces, key=lambda piece: piece[0])
    text = "".join(text for _, text in pieces)
    if unknown := sorted(set(text) - set(CHARACTERS)):
        raise UserError(
            f"{path}: holds {unknown[0]!r}, which is not among the {len(CHARACTERS)} characters "
            "of LEAF's Shakespeare"
        )
    numbers = np.zeros(128, dtype=np.uint8)
    numbers[list(CHARACTERS.encode())] = np.arange(first, first + len(CHARACTERS))
    characters = numbers[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]
    try:
        roles = [role_of(user) for user, _ in pieces]
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    lengths = np.array([len(text) for _, text in pieces])
    begins = np.ones(len(characters), dtype=bool)
    for end in np.cumsum(lengths):
        begins[end - LENGTH : end] = False
    groups = np.repeat(np.unique(roles, return_inverse=True)[1], lengths)
    starts = np.flatnonzero(begins)
    test = np.zeros(len(starts), dtype=bool)
    shuffled = generator(0, "shakespeare test split").permutation(len(starts))
    test[shuffled[: round(len(starts) * test_share)]] = True
    return _split(characters, groups, starts[~test]), _split(characters, groups, starts[test])


def _split(characters: np.ndarray, groups: np.ndarray, starts: np.ndarray) -> Split:
    windows = sliding_window_view(characters, LENGTH)

    def read() -> Iterator[np.ndarray]:
        for begin in range(0, len(starts), BLOCK):
            yield windows[starts[begin : begin + BLOCK]]

    return Split(
        Blocks((len(starts), LENGTH), read),
        characters[starts + LENGTH].astype(np.int64),
        groups[starts],
    )


def _pieces(path: Path) -> Iterator[Piece]:
    """Rebuild the texts that a table of samples was cut from, by joining overlapping rows."""
    last, expected, parts = "", "", list[str]()
    for user, window, following in _rows(path):
        if user != last or window != expected:
            if parts:
                yield last, "".join(parts)
            last, parts = user, [window]
        parts.append(following)
        expected = window[1:] + following
    if parts:
        yield last, "".join(parts)


def _rows(path: Path) -> Iterator[list[str]]:
    """Read the rows of a table of samples: user, 80 characters, and the next one."""
    with open(path, encoding="ascii", errors="surrogateescape", newline="") as file:
        rows = csv.reader(file, strict=True)
        line, user = 1, ""
        try:
            if next(rows, None) != COLUMNS:
                raise ValueError(f"the names of its columns, {','.join(COLUMNS)}, are expected")
            line = rows.line_num + 1
            for row in rows:
                if len(row) != 3 or len(row[1]) != LENGTH or len(row[2]) != 1:
                    raise ValueError(f"a user, {LENGTH} characters and one more are expected")
                if row[2] not in CHARACTERS or not row[1].isascii():
                    raise ValueError(
                        f"it holds more than the {len(CHARACTERS)} characters of LEAF's Shakespeare"
                    )
                if row[0] != user:
                    user = row[0]
                    role_of(user)
                yield row
                line = rows.line_num + 1
        except (csv.Error, ValueError) as error:
            raise UserError(f"{path}: line {line} is broken ({error})") from None
