"""What the page shows of a study's claims: the verdicts, and the numbers behind them as a table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.results.claims.decision import (
    HELD,
    LEANS_HELD,
    LEANS_NOT_HELD,
    NOT_ENOUGH,
    NOT_HELD,
    NOT_JUDGED,
    TIE,
    UNDECIDED,
)
from cohort.results.claims.layout import MEASURED, PAPER, TOO_FEW
from cohort.results.claims.verdict import NO_PAPER
from cohort.results.report.render import together
from cohort.results.report.runs import StudyRuns

OURS, PAPERS = "our runs", "paper's numbers"
NO_RUNS = "no runs yet"
EVIDENCE, VALUE = ["Evidence"], ["Value"]
SIDES = {PAPERS: "paper", OURS: "ours"}
PLACES = ("First", "Second", "Third", "Fourth")
ORDER = (HELD, NOT_HELD, LEANS_HELD, LEANS_NOT_HELD, TIE, UNDECIDED)
MOST_COLUMNS = 10  # a comparison of more points is shown as one line of text
MOST_ROWS = 3  # more comparisons are folded away
Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Value:
    """A number of a comparison: the mean or the paper's value, its interval, its number of runs,
    and the anchor of those runs."""

    text: str = ""
    name: str = ""
    interval: str = ""
    n: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class Row:
    """One side of a comparison: the paper's numbers or ours, and the verdict on them."""

    whose: str
    values: list[Value]
    difference: Value | None
    word: str


@dataclass(frozen=True)
class Claim:
    """A claim with its verdicts, and a table with rows for each comparison. `outlook` says what
    would decide it."""

    name: str
    says: str
    where: str
    verdicts: list[tuple[str, str]]
    outlook: str
    columns: list[str]
    comparisons: list[tuple[str, list[Row]]]
    counts: list[str]
    notes: list[str]
    labels: dict[str, list[str]]

    @property
    def is_long(self) -> bool:
        """Whether its comparisons are folded away at first."""
        return len(self.comparisons) > MOST_ROWS

    @property
    def has_numbers(self) -> bool:
        """Whether any number is known."""
        return any(rows for _, rows in self.comparisons)

    @property
    def is_named(self) -> bool:
        """Whether its comparisons have names that tell them apart."""
        return any(name for name, _ in self.comparisons)

    @property
    def has_differences(self) -> bool:
        """Whether any of its comparisons has an interval."""
        return any(row.difference for _, rows in self.comparisons for row in rows)


@dataclass(frozen=True)
class Claims:
    """All claims of a study, how many have each verdict, and how verdicts come about."""

    claims: list[Claim]
    totals: list[tuple[str, list[tuple[str, int]]]]
    notes: list[str]


def read_claims(file: Path, runs: StudyRuns) -> Claims:
    """The claims in the JSON file that `judge` writes."""
    found = json.loads(file.read_text(encoding="utf-8"))
    has_paper = any(claim["paper"] != NO_PAPER for claim in found)
    claims = [_claim(claim, runs, has_paper) for claim in found]
    totals = [("our runs", _counted(list(map(_measured, found))))]
    if has_paper:
        words = [claim["paper"] for claim in found]
        totals.insert(0, ("the paper's own numbers", _counted(words)))
    return Claims(claims, totals, [MEASURED, *([PAPER] if has_paper else []), TOO_FEW])


def _counted(words: Sequence[str]) -> list[tuple[str, int]]:
    """How many claims have each verdict: held first, then not held and the unclear ones."""
    counts = Counter(words)
    known = [word for word in ORDER if word in counts]
    return [(word, counts[word]) for word in [*known, *sorted(set(counts) - set(known))]]


def _measured(claim: Numbers) -> str:
    """The verdict by our runs, or that there are none."""
    return NO_RUNS if claim["measured"] == NOT_ENOUGH and not claim["n"] else str(claim["measured"])


def _claim(claim: Numbers, runs: StudyRuns, has_paper: bool) -> Claim:
    compared: Sequence[Numbers] = claim["comparisons"]
    verdicts = [(PAPERS, claim["paper"])] if has_paper else []
    if (word := _measured(claim)) not in (NO_RUNS, NOT_JUDGED):  # which the totals say once
        verdicts.append((OURS, word))
    columns = _columns(compared)
    return Claim(
        name=claim["claim"],
        says=claim["says"],
        where=claim["where"],
        verdicts=verdicts,
        outlook=claim["gap"] if claim["measured"] == UNDECIDED else "",
        columns=columns,
        comparisons=[(_setting(one, columns), _rows(one, columns, runs)) for one in compared],
        counts=_counts(compared),
        notes=_notes(claim),
        labels=together(point["labels"] for one in compared for point in one["points"]),
    )


def _counts(compared: Sequence[Numbers]) -> list[str]:
    """How many comparisons hold: by the paper's numbers, and in our runs."""
    found = []
    for whose, key in ((PAPERS, "paper"), (OURS, "measured")):
        words = [one[key] for one in compared if one[key]]
        if words:
            unjudged = len(compared) - len(words)
            rest = f", {unjudged} without a verdict" if unjudged else ""
            hold = words.count(HELD) + words.count(LEANS_HELD)
            found.append(f"{whose}: {hold} of {len(compared)} hold{rest}")
    return found


def _notes(claim: Numbers) -> list[str]:
    notes = [f"Our runs: {claim['gap']}."] if claim["gap"] and claim["n"] else []
    notes += [f"Paper: {claim['paper_gap']}."] if claim["paper_gap"] else []
    if claim["diverged"]:
        notes.append(f"{claim['diverged']} runs diverged and count with the worst value.")
    return notes + ([f"Doubtful: {claim['doubtful']}."] if claim["doubtful"] else [])


def _names(one: Numbers) -> list[str]:
    return [point["name"] for point in one["points"]]


def _columns(compared: Sequence[Numbers]) -> list[str]:
    """The names of the points if all comparisons share them, else their places in a comparison, or
    one column of evidence if there are too many."""
    names = list(map(_names, compared))
    longest = max(names, key=len, default=[])
    if len(longest) > MOST_COLUMNS:
        return EVIDENCE
    if all(set(one) <= set(longest) and len(set(one)) == len(one) for one in names):
        return longest
    return VALUE if len(longest) == 1 else [*PLACES, *map(str, range(5, 99))][: len(longest)]


def _setting(one: Numbers, columns: Sequence[str]) -> str:
    """What tells a comparison from the others; if it has one point only, that point."""
    own = _names(one) if columns == VALUE else []
    return ", ".join([*([one["name"]] if one["name"] else []), *own])


def _rows(one: Numbers, columns: Sequence[str], runs: StudyRuns) -> list[Row]:
    """The paper's row and ours, each if it has any number."""
    found = []
    for whose, key, shown in ((PAPERS, "paper", "paper_shown"), (OURS, "measured", "shown")):
        by_place = columns[0] in PLACES
        values = [_value(point, whose, runs, named=by_place) for point in one["points"]]
        if columns == EVIDENCE:
            values = [Value(one[shown])]
        elif not by_place and columns != VALUE:
            by_name = dict(zip(_names(one), values, strict=True))
            values = [by_name.get(name, Value()) for name in columns]
        if any(value.text for value in values):
            difference = _difference(one["difference"]) if whose == OURS else None
            found.append(Row(SIDES[whose], values, difference, one[key]))
    return found


def _value(point: Numbers, whose: str, runs: StudyRuns, *, named: bool) -> Value:
    name = point["name"] if named else ""
    if whose == PAPERS:
        return Value(point.get("paper", ""), name)
    ours = point.get("ours")
    if ours is None:
        return Value()
    anchor = runs.anchor(point["experiment"], point["labels"])
    interval = f"[{ours['low']}, {ours['high']}]" if "low" in ours else ""
    missing = ours["n"] < ours["planned"]
    count = f"n = {ours['n']}" + (f" of {ours['planned']}" if missing else "")
    return Value(ours["mean"], name, interval, count, anchor)


def _difference(found: Numbers | None) -> Value | None:
    if found is None:
        return None
    interval = f"[{found['low']}, {found['high']}]"
    return Value(found["mean"], interval=interval, n=found["seeds"])
