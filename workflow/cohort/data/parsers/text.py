"""Parsers of LEAF's Shakespeare (80 characters and the next one) and UCI's forest cover types."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from cohort.data import sampling
from cohort.data.split import Blocks, Parser, Split

LENGTH = 80  # characters of a sample
CHARACTERS = " !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""All that occur. They are numbered from 1 if 0 is reserved for padding."""
BLOCK = 1 << 16  # samples

# Gutenberg's complete works of Shakespeare, read as LEAF does (data/shakespeare/preprocess there)
AUTHOR = "by William Shakespeare"  # the line below the title of each play
BEFORE_THE_PLAYS = 5  # lines above the author's second mention; the first is for the sonnets
LAST_LINE = 124195  # the plays end here
ABOVE_THE_AUTHOR = range(2, 8)  # lines, one of which holds the title
SPOKEN, CONTINUED = re.compile(r"  ([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"    (.*)")
UNINDENTED = "THE COMEDY OF ERRORS"  # the one play without indents; directions begin with <
SPOKEN_THERE, CONTINUED_THERE = re.compile(r"([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"(.*)")
MIN_LINES = 3  # of a role


class Shakespeare(Parser):
    """Parses LEAF's Shakespeare samples from the text of the plays."""

    name: ClassVar[str] = "shakespeare"
    first: ClassVar[int] = 1  # the number of the first character
    test_share: ClassVar[float] = 1 / 20  # of all samples, as in AML's federated study

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "raw_data.txt"
        by_role = sorted(text_by_role(path).items(), key=lambda piece: "_".join(piece[0]))
        pieces = [(role, text) for (_, role), text in by_role if len(text) > LENGTH]
        text = "".join(text for _, text in pieces)
        numbers = np.zeros(128, dtype=np.uint8)
        numbers[list(CHARACTERS.encode())] = np.arange(self.first, self.first + len(CHARACTERS))
        characters = numbers[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]
        lengths = np.array([len(text) for _, text in pieces])
        begins = np.ones(len(characters), dtype=bool)
        for end in np.cumsum(lengths):
            begins[end - LENGTH : end] = False
        groups = np.repeat(np.unique([role for role, _ in pieces], return_inverse=True)[1], lengths)
        starts = np.flatnonzero(begins)
        test = sampling.draw_part(len(starts), self.test_share, "shakespeare test split")
        return _split(characters, groups, starts[~test]), _split(characters, groups, starts[test])


class ShakespeareCentral(Shakespeare):
    """Parses Shakespeare as in AML's centralized study: characters are numbered from 0, because
    there is no padding, and a tenth is for testing."""

    name: ClassVar[str] = "shakespeare-central"
    first: ClassVar[int] = 0
    test_share: ClassVar[float] = 1 / 10


def _split(characters: np.ndarray, groups: np.ndarray, starts: np.ndarray) -> Split:
    windows = sliding_window_view(characters, LENGTH)

    def read() -> Iterator[np.ndarray]:
        for begin in range(0, len(starts), BLOCK):
            yield windows[starts[begin : begin + BLOCK]]

    following = characters[starts + LENGTH].astype(np.int64)
    return Split(Blocks((len(starts), LENGTH), read), following, groups[starts])


def text_by_role(path: Path) -> dict[tuple[str, str], str]:
    """Read Gutenberg's Shakespeare: the text of each play and role, named as by LEAF."""
    lines = path.read_text(encoding="utf-8").splitlines()[1 : LAST_LINE + 2]
    mentions = [number for number, line in enumerate(lines) if AUTHOR in line]
    return {
        (leaf_name(title), leaf_name(role)): re.sub(" {2,}", " ", " ".join([*parts, ""]))
        for title, roles in _plays(lines[max(0, mentions[1] - BEFORE_THE_PLAYS) :])
        for role, parts in roles.items()
        if len(roles) > 1 and len(parts) >= MIN_LINES
    }


def leaf_name(name: str) -> str:
    """A play's or role's name as LEAF writes it in its users' names, `PLAY_ROLE`."""
    return re.sub(r"\W+", "_", name.replace(" ", "_"))


def _plays(lines: list[str]) -> list[tuple[str, dict[str, list[str]]]]:
    """Each play's title, and for each of its roles the lines it speaks."""
    plays: list[tuple[str, dict[str, list[str]]]] = []
    roles: dict[str, list[str]] = defaultdict(list)
    role, title = "", ""
    for number, line in enumerate(lines):
        if AUTHOR in line:
            above = (lines[number - distance].strip() for distance in ABOVE_THE_AUTHOR)
            title, roles, role = next(filter(None, above), ""), defaultdict(list), ""
            plays.append((title, roles))
        elif begun := (SPOKEN_THERE if title == UNINDENTED else SPOKEN).match(line):
            role = begun[1].upper()
            if title == UNINDENTED and role.startswith("ACT "):
                role = ""
            if role:
                roles[role].append(begun[2])
        elif role and (more := (CONTINUED_THERE if title == UNINDENTED else CONTINUED).match(line)):
            if title == UNINDENTED and more[1].startswith("<"):
                role = ""
            else:
                roles[role].append(more[1])
    return plays


class Covtype(Parser):
    """Parses COVTYPE's two largest of seven kinds of forest: spruce and fir is class 0, lodgepole
    pine class 1. A row is ten numbers, then four wilderness areas and 40 soil types as zeros and
    ones, then the kind. A fifth is drawn for testing: the publisher's split is of all kinds."""

    name: ClassVar[str] = "covtype"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "covtype.data.gz"
        table = np.loadtxt(path, np.int16, delimiter=",", comments=None, ndmin=2)
        table = table[np.isin(table[:, -1], (1, 2))]
        values, labels = table[:, :-1], table[:, -1]
        test = sampling.draw_part(len(table), 1 / 5, "covtype test split")
        return Split(values[~test], labels[~test] - 1), Split(values[test], labels[test] - 1)
