"""Decides from the spread over seeds whether a claim holds.

A comparison is a list of clauses, all of which must be true; a clause is true if one of its
contrasts, a difference seed by seed, is above 0. Held is an intersection-union test: each clause is
tested at 5 %, which its alternatives share. For not held Holm's correction covers all clauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from cohort.results.intervals import ALPHA, ENOUGH_SEEDS, Sample, holm_levels

HELD, NOT_HELD, UNDECIDED, TIE = "held", "not held", "undecided", "tie"
LEANS_HELD, LEANS_NOT_HELD = "leans towards held", "leans towards not held"
LEANING = {HELD: LEANS_HELD, NOT_HELD: LEANS_NOT_HELD}
HOLDS = (HELD, LEANS_HELD)
SHOWN_ORDER = (HELD, NOT_HELD, LEANS_HELD, LEANS_NOT_HELD, TIE, UNDECIDED)
CROSS, OPEN, EQUAL = "✗", "?", "="
MARKS = {NOT_HELD: CROSS, LEANS_NOT_HELD: CROSS, UNDECIDED: OPEN, TIE: EQUAL}
NOT_JUDGED = "not judged at this scale"

Clauses = list[list[Sample]]


@dataclass(frozen=True)
class DecidingContrast:
    """The contrast on which the verdict on a comparison depends, and the one-sided bounds of its
    mean: held if `low` is above 0, not held if `high` is below."""

    contrast: Sample
    low: float
    high: float


def decide(comparisons: Sequence[Clauses], *, every_run: bool = False) -> list[str]:
    """The verdict on each comparison of a claim; with `every_run` all runs must bear it out."""
    verdicts = []
    for clauses, levels in zip(comparisons, _levels(comparisons), strict=True):
        contrasts = [contrast for clause in clauses for contrast in clause]
        if every_run:
            is_held = all(contrast.above == contrast.n for contrast in contrasts)
            verdict = HELD if is_held else NOT_HELD
        elif any(
            _refutation(clause) <= level for clause, level in zip(clauses, levels, strict=True)
        ):
            verdict = NOT_HELD
        elif all(_confirmation(clause) <= ALPHA for clause in clauses):
            verdict = HELD
        else:
            verdict = TIE if any(map(_is_tie, clauses)) else UNDECIDED
        is_refuted = every_run and verdict == NOT_HELD  # by one run, however few there are
        is_leaning = not is_refuted and any(contrast.n < ENOUGH_SEEDS for contrast in contrasts)
        verdicts.append(LEANING.get(verdict, verdict) if is_leaning else verdict)
    return verdicts


def overall_verdict(verdicts: Sequence[str]) -> str:
    """The verdict on a claim: the worst one on its comparisons, all of which must hold."""
    worst_first = (NOT_HELD, LEANS_NOT_HELD, TIE, UNDECIDED, LEANS_HELD)
    return next((verdict for verdict in worst_first if verdict in verdicts), HELD)


def deciding_contrasts(comparisons: Sequence[Clauses]) -> list[DecidingContrast | None]:
    """The best contrast of each comparison's worst clause; None if it has no clause."""
    deciding: list[DecidingContrast | None] = []
    for clauses, levels in zip(comparisons, _levels(comparisons), strict=True):
        bounded = []
        for clause, level in zip(clauses, levels, strict=True):
            best = max(clause, key=_strength)
            low, _ = best.interval(2 * ALPHA / len(clause))
            _, high = best.interval(2 * level)
            bounded.append(DecidingContrast(best, low, high))
        deciding.append(min(bounded, key=lambda bounds: _strength(bounds.contrast), default=None))
    return deciding


def _levels(comparisons: Sequence[Clauses]) -> list[list[float]]:
    """The level at which each clause is tested for not held, by Holm's procedure."""
    p_values = [_refutation(clause) for clauses in comparisons for clause in clauses]
    levels = iter(holm_levels(p_values))
    return [list(islice(levels, len(clauses))) for clauses in comparisons]


def _confirmation(clause: Sequence[Sample]) -> float:
    """The p-value of the hypothesis that no contrast of a clause is above 0."""
    return min(contrast.p_above() for contrast in clause) * len(clause)


def _refutation(clause: Sequence[Sample]) -> float:
    """The p-value of the hypothesis that some contrast of a clause is not below 0."""
    return max((-contrast).p_above() for contrast in clause)


def _is_tie(clause: Sequence[Sample]) -> bool:
    """Whether the clause's best contrast is 0 in every seed, so that no number of seeds decides."""
    best = max(clause, key=_strength)
    return best.mean == 0 and best.sd == 0


def _strength(contrast: Sample) -> float:
    """The contrast's mean in half-widths of its interval."""
    half = contrast.half_width()
    if half:
        return contrast.mean / half
    return float("inf") * contrast.mean if contrast.mean else 0.0
