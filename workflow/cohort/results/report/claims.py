"""What the page shows of a study's claims: the verdicts, and the numbers behind them as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cohort.results.claims.judged import (
    BRACKETS,
    HOLDS,
    LEANS_NOT_HELD,
    MEASURED,
    NO_PAPER,
    NOT_HELD,
    NOT_JUDGED,
    PAPER,
    SHOWN_ORDER,
    TOO_FEW,
    Evidence,
    JudgedClaim,
    JudgedComparison,
    Numbers,
    read_judged,
)
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.report.render import merged, with_suffix
from cohort.results.report.runs import StudyRuns
from cohort.results.series import NO_RUNS

CONTRADICTED = "Contradicted by the paper's own numbers"
REFUTED = "Contradicted by our runs"
OTHERS, ALL = "All other claims", "All claims"
EVIDENCE, VALUE = ["Evidence"], ["Value"]
SIDES = {"paper": "paper's numbers", "ours": "our runs"}
PLACES = ("First", "Second", "Third", "Fourth")
MOST_COLUMNS = 10  # a comparison of more points is shown as one line of text


@dataclass(frozen=True)
class Cell:
    """A point in the table of a claim: its numbers, its name where its column does not say it, and
    the page anchor of its runs."""

    numbers: Numbers
    name: str = ""
    anchor: str = ""


Row = tuple[str, Evidence, list[Cell]]
"""A side of a comparison in a claim's table (`paper` or `ours`), its evidence and its cells."""


@dataclass(frozen=True)
class Claim:
    """A claim as the page shows it: with our verdict (`ours`), the verdicts to show, and a table
    with rows for each comparison.

    `quotes` has the paper's sentence (`quote`), the paper's own numbers where they contradict it
    (`against`), and what to make of them (`reading`).
    """

    judged: JudgedClaim
    quotes: Mapping[str, str]
    ours: str
    verdicts: list[tuple[str, str]]
    columns: list[str]
    comparisons: list[tuple[str, list[Row]]]

    @property
    def heading(self) -> str:
        """The heading of the study's page under which the claim stands."""
        if self.judged.paper == NOT_HELD:
            return CONTRADICTED
        return REFUTED if self.judged.measured in (NOT_HELD, LEANS_NOT_HELD) else OTHERS

    @property
    def rows(self) -> list[Row]:
        """The rows of all comparisons, of the paper's numbers and of ours."""
        return [row for _, rows in self.comparisons for row in rows]

    @property
    def labels(self) -> dict[str, list[str]]:
        """The label values of all points, by which the page's filter finds the claim."""
        points = (point for compared in self.judged.comparisons for point in compared.points)
        return merged(point.labels for point in points)

    @property
    def counts(self) -> list[str]:
        """Sentences on how many comparisons hold: by the paper's numbers, and in our runs."""
        counts, comparisons = [], self.judged.comparisons
        for side, whose in SIDES.items():
            evidence = [compared.sides[side] for compared in comparisons if side in compared.sides]
            verdicts = [part.verdict for part in evidence if part.verdict]
            if verdicts:
                unjudged = len(comparisons) - len(verdicts)
                rest = f", {unjudged} without a verdict" if unjudged else ""
                hold = sum(verdict in HOLDS for verdict in verdicts)
                counts.append(f"{whose}: {hold} of {len(comparisons)} hold{rest}")
        return counts

    @property
    def lacks_seeds(self) -> bool:
        """Whether our runs lean or are undecided with too few seeds for a verdict."""
        return bool(self.judged.gap) and self.judged.measured in SHOWN_ORDER

    @property
    def notes(self) -> list[str]:
        """Sentences on what is missing, diverged or doubtful."""
        claim = self.judged
        is_said = self.lacks_seeds  # above the numbers
        notes = [f"Our runs: {claim.gap}."] if claim.gap and claim.n and not is_said else []
        notes += [f"Paper: {claim.paper_gap}."] if claim.paper_gap else []
        if claim.diverged:
            notes.append(f"{claim.diverged} runs diverged and count with the worst value.")
        return notes + ([f"Doubtful: {claim.doubtful}."] if claim.doubtful else [])


@dataclass(frozen=True)
class Claims:
    """All claims of a study's page, the number with each verdict, and how verdicts come about."""

    claims: list[Claim]
    totals: list[tuple[str, list[tuple[str, int]]]]
    notes: list[str]

    @property
    def groups(self) -> list[tuple[str, list[Claim]]]:
        """Pairs of a heading and its claims, contradicted ones first."""
        groups: dict[str, list[Claim]] = {CONTRADICTED: [], REFUTED: [], OTHERS: []}
        for claim in self.claims:
            groups[claim.heading].append(claim)
        shown = [(name, claims) for name, claims in groups.items() if claims]
        return shown if len(shown) > 1 or shown[0][0] != OTHERS else [(ALL, self.claims)]


def page_claims(spec: Mapping[str, Any], runs: StudyRuns) -> Claims:
    """Read the claims of a page from the JSON file that `write_judged` writes."""
    judged = read_judged(with_suffix(spec["claims"], ".json"))
    has_paper = any(claim.paper != NO_PAPER for claim in judged)
    totals = [(SIDES["ours"], _verdict_counts(map(_our_verdict, judged)))]
    if has_paper:
        papers = _verdict_counts(claim.paper for claim in judged)
        totals.insert(0, ("the paper's own numbers", papers))
    claims = [_claim(claim, spec["quotes"][claim.claim], runs, has_paper) for claim in judged]
    return Claims(
        claims, totals, [f"{MEASURED} {BRACKETS}", *([PAPER] if has_paper else []), TOO_FEW]
    )


def _verdict_counts(verdicts: Iterable[str]) -> list[tuple[str, int]]:
    """Count the claims with each verdict: held first, then not held and the unclear ones."""
    counts = Counter(verdicts)
    ordered = [*SHOWN_ORDER, *sorted(set(counts) - set(SHOWN_ORDER))]
    return [(verdict, counts[verdict]) for verdict in ordered if verdict in counts]


def _our_verdict(claim: JudgedClaim) -> str:
    """The verdict by our runs, or NO_RUNS if there are none."""
    return NO_RUNS if claim.measured == NOT_ENOUGH and not claim.n else claim.measured


def _claim(
    claim: JudgedClaim, quotes: Mapping[str, str], runs: StudyRuns, has_paper: bool
) -> Claim:
    verdicts = [(SIDES["paper"], claim.paper)] if has_paper else []
    ours = _our_verdict(claim)
    if ours not in (NO_RUNS, NOT_JUDGED):  # which the totals say once
        verdicts.append((SIDES["ours"], ours))
    columns = _columns(claim.comparisons)
    comparisons = [
        (_setting(comparison, columns), list(_rows(comparison, columns, runs)))
        for comparison in claim.comparisons
    ]
    return Claim(claim, quotes, ours, verdicts, columns, comparisons)


def _names(comparison: JudgedComparison) -> list[str]:
    return [point.name for point in comparison.points]


def _columns(comparisons: Sequence[JudgedComparison]) -> list[str]:
    """The titles of the columns: the names of the points if all comparisons share them, else their
    positions in a comparison, or one column of evidence if there are too many."""
    names = list(map(_names, comparisons))
    longest = max(names, key=len, default=[])
    if len(longest) > MOST_COLUMNS:
        return EVIDENCE
    if all(set(own) <= set(longest) and len(set(own)) == len(own) for own in names):
        return longest
    return VALUE if len(longest) == 1 else [*PLACES, *map(str, range(5, 99))][: len(longest)]


def _setting(comparison: JudgedComparison, columns: Sequence[str]) -> str:
    """The name that tells a comparison from the others, with its point's if it has only one."""
    own = _names(comparison) if columns == VALUE else []
    return ", ".join(filter(None, [comparison.name, *own]))


def _rows(comparison: JudgedComparison, columns: Sequence[str], runs: StudyRuns) -> Iterator[Row]:
    """The paper's row and ours, each only if it has any number."""
    for side, evidence in comparison.sides.items():
        cells = _cells(comparison, evidence, columns, runs)
        if any(cell.numbers.mean for cell in cells):
            yield side, evidence, cells


def _cells(
    comparison: JudgedComparison, evidence: Evidence, columns: Sequence[str], runs: StudyRuns
) -> list[Cell]:
    if columns == EVIDENCE:
        return [Cell(Numbers(evidence.shown))]
    by_place = columns[0] in PLACES
    cells = []
    for point, numbers in zip(comparison.points, evidence.numbers, strict=True):
        anchor = runs.anchor(point.experiment, point.labels) if numbers.n else ""
        cells.append(Cell(numbers, point.name if by_place else "", anchor))
    if by_place or columns == VALUE:
        return cells
    by_name = dict(zip(_names(comparison), cells, strict=True))
    return [by_name.get(name, Cell(Numbers())) for name in columns]
