"""Find who says what in Gutenberg's complete works of Shakespeare, as LEAF does
(data/shakespeare/preprocess in its repository)."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from cohort.core.errors import UserError

AUTHOR = "by William Shakespeare"  # the line below the title of each play
BEFORE_THE_PLAYS = 5  # lines above the author's second mention; the first is for the sonnets
LAST_LINE = 124195  # the plays end here
ABOVE_THE_AUTHOR = range(2, 8)  # lines, one of which holds the title
SPOKEN, CONTINUED = re.compile(r"  ([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"    (.*)")
UNINDENTED = "THE COMEDY OF ERRORS"  # the one play without indents; directions begin with <
SPOKEN_THERE, CONTINUED_THERE = re.compile(r"([a-zA-Z][a-zA-Z ]*)\. (.*)"), re.compile(r"(.*)")
FEWEST_LINES = 3  # of a user
PLAYS = (
    "ALLS_WELL_THAT_ENDS_WELL",
    "AS_YOU_LIKE_IT",
    "THE_COMEDY_OF_ERRORS",
    "LOVE_S_LABOUR_S_LOST",
    "MEASURE_FOR_MEASURE",
    "THE_MERCHANT_OF_VENICE",
    "THE_MERRY_WIVES_OF_WINDSOR",
    "A_MIDSUMMER_NIGHT_S_DREAM",
    "MUCH_ADO_ABOUT_NOTHING",
    "THE_TRAGEDY_OF_HAMLET__PRINCE_OF_DENMARK",
    "THE_TEMPEST",
    "THE_TAMING_OF_THE_SHREW",
    "TWELFTH_NIGHT__OR__WHAT_YOU_WILL",
    "THE_TWO_GENTLEMEN_OF_VERONA",
    "THE_WINTER_S_TALE",
    "KING_JOHN",
    "CYMBELINE",
    "SECOND_PART_OF_KING_HENRY_IV",
    "THE_LIFE_OF_KING_HENRY_THE_FIFTH",
    "THE_FIRST_PART_OF_KING_HENRY_THE_FOURTH",
    "KING_RICHARD_III",
    "THE_FIRST_PART_OF_HENRY_THE_SIXTH",
    "THE_SECOND_PART_OF_KING_HENRY_THE_SIXTH",
    "THE_THIRD_PART_OF_KING_HENRY_THE_SIXTH",
    "KING_RICHARD_THE_SECOND",
    "KING_HENRY_THE_EIGHTH",
    "THE_TRAGEDY_OF_ANTONY_AND_CLEOPATRA",
    "THE_TRAGEDY_OF_CORIOLANUS",
    "THE_TRAGEDY_OF_JULIUS_CAESAR",
    "THE_TRAGEDY_OF_KING_LEAR",
    "THE_TRAGEDY_OF_MACBETH",
    "THE_TRAGEDY_OF_OTHELLO__MOOR_OF_VENICE",
    "THE_TRAGEDY_OF_ROMEO_AND_JULIET",
    "THE_LIFE_OF_TIMON_OF_ATHENS",
    "THE_TRAGEDY_OF_TITUS_ANDRONICUS",
    "THE_HISTORY_OF_TROILUS_AND_CRESSIDA",
)

Spoken = dict[str, list[str]]


def text_by_role(path: Path) -> dict[str, str]:
    """Read Gutenberg's Shakespeare: the lines of each role of a play, joined into one text."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[1 : LAST_LINE + 2]
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: is not text in UTF-8 ({error.reason} at byte {error.start})"
        ) from None
    mentions = [number for number, line in enumerate(lines) if AUTHOR in line]
    if len(mentions) < 2:
        raise UserError(
            f"{path}: names '{AUTHOR}' less than twice, so it is not Gutenberg's complete works"
        )
    return {
        user_of(title, role): re.sub(" {2,}", " ", " ".join([*parts, ""]))
        for title, roles in _plays(lines[max(0, mentions[1] - BEFORE_THE_PLAYS) :])
        for role, parts in roles.items()
        if len(roles) > 1 and len(parts) >= FEWEST_LINES
    }


def user_of(title: str, role: str) -> str:
    """LEAF's user name for a role of a play."""
    return re.sub(r"\W+", "_", f"{title}_{role}".replace(" ", "_"))


def role_of(user: str) -> str:
    """The role in LEAF's user name, which begins with the play; ValueError if no play fits."""
    for play in PLAYS:
        if user.startswith(f"{play}_"):
            return user.removeprefix(f"{play}_")
    raise ValueError(f"'{user}' is a role of no known play")


def _plays(lines: list[str]) -> list[tuple[str, Spoken]]:
    """Each play's title, and for each of its roles the lines it speaks."""
    plays: list[tuple[str, Spoken]] = []
    roles: Spoken = defaultdict(list)
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
