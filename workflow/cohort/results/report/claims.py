"""What a page says of a study's claims beside their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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
    JudgedClaim,
    read_judged,
)
from cohort.results.intervals import NOT_ENOUGH
from cohort.results.report.render import with_suffix
from cohort.results.series import NO_RUNS

CONTRADICTED = "Contradicted by the paper's own numbers"
REFUTED = "Contradicted by our runs"
OTHERS, ALL = "All other claims", "All claims"
SIDES = {"paper": "paper's numbers", "ours": "our runs"}


def page_claims(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Read the claims of a page from the JSON file that `write_judged` writes: how many have each
    verdict, how verdicts come about, and the claims below headings, contradicted ones first."""
    judged = read_judged(with_suffix(spec["claims"], ".json"))
    has_paper = any(claim.paper != NO_PAPER for claim in judged)
    totals = [(SIDES["ours"], _verdict_counts(map(_our_verdict, judged)))]
    if has_paper:
        papers = _verdict_counts(claim.paper for claim in judged)
        totals.insert(0, ("the paper's own numbers", papers))
    groups: dict[str, list[dict[str, Any]]] = {CONTRADICTED: [], REFUTED: [], OTHERS: []}
    for claim in judged:
        is_refuted = claim.measured in (NOT_HELD, LEANS_NOT_HELD)
        heading = CONTRADICTED if claim.paper == NOT_HELD else REFUTED if is_refuted else OTHERS
        groups[heading].append(_claim(claim, spec["quotes"][claim.claim], has_paper))
    shown = [(heading, claims) for heading, claims in groups.items() if claims]
    return {
        "totals": totals,
        "notes": [f"{MEASURED} {BRACKETS}", *([PAPER] if has_paper else []), TOO_FEW],
        "groups": [(ALL, shown[0][1])] if [heading for heading, _ in shown] == [OTHERS] else shown,
    }


def _verdict_counts(verdicts: Iterable[str]) -> list[tuple[str, int]]:
    """Count the claims with each verdict: held first, then not held and the unclear ones."""
    counts = Counter(verdicts)
    ordered = [*SHOWN_ORDER, *sorted(set(counts) - set(SHOWN_ORDER))]
    return [(verdict, counts[verdict]) for verdict in ordered if verdict in counts]


def _our_verdict(claim: JudgedClaim) -> str:
    """The verdict by our runs, or NO_RUNS if there are none."""
    return NO_RUNS if claim.measured == NOT_ENOUGH and not claim.n else claim.measured


def _claim(claim: JudgedClaim, quotes: Mapping[str, str], has_paper: bool) -> dict[str, Any]:
    """A claim with the verdicts to show. Its `quotes` have the paper's sentence (`quote`), the
    paper's own numbers where they contradict it (`against`), and what to make of them
    (`reading`)."""
    ours = _our_verdict(claim)
    verdicts = [(SIDES["paper"], claim.paper)] if has_paper else []
    if ours not in (NO_RUNS, NOT_JUDGED):  # which the totals say once
        verdicts.append((SIDES["ours"], ours))
    lacks_seeds = bool(claim.gap) and claim.measured in SHOWN_ORDER
    notes = {
        f"Our runs: {claim.gap}.": claim.gap and claim.n and not lacks_seeds,
        f"Paper: {claim.paper_gap}.": claim.paper_gap,
        f"{claim.diverged} runs diverged and count with the worst value.": claim.diverged,
        f"Doubtful: {claim.doubtful}.": claim.doubtful,
    }
    parts = [part for comparison in claim.comparisons for part in comparison.sides.values()]
    return {
        "judged": claim,
        "quotes": quotes,
        "verdicts": verdicts,
        "lacks_seeds": lacks_seeds,  # which is said above the numbers
        "notes": [note for note, is_needed in notes.items() if is_needed],
        "counts": hold_counts(claim),
        "has_numbers": any(numbers.mean for part in parts for numbers in part.numbers),
    }


def hold_counts(claim: JudgedClaim) -> list[str]:
    """Sentences on how many comparisons hold: by the paper's numbers, and in our runs."""
    counts, total = [], len(claim.comparisons)
    for side, whose in SIDES.items():
        evidence = [it.sides[side] for it in claim.comparisons if side in it.sides]
        verdicts = [part.verdict for part in evidence if part.verdict]
        if verdicts:
            unjudged = total - len(verdicts)
            rest = f", {unjudged} without a verdict" if unjudged else ""
            hold = sum(verdict in HOLDS for verdict in verdicts)
            counts.append(f"{whose}: {hold} of {total} hold{rest}")
    return counts
