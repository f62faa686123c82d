"""Decides from the spread over seeds whether a claim holds, and how many seeds would decide it.

A comparison is a list of clauses, all of which must be true; a clause is true if one of its
contrasts, a difference seed by seed, is above 0. Holm's correction covers all contrasts of a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from cohort.metrics.intervals import Sample, holm, signs

HELD, NOT_HELD, UNDECIDED = "held", "not held", "undecided"
NOT_ENOUGH, NOT_JUDGED = "not enough runs", "not judged at this scale"
LEAST_SEEDS = 3  # fewer give no word
MOST_SEEDS = 1000  # beyond which nobody would go

Clauses = list[list[Sample]]


@dataclass(frozen=True)
class Deciding:
    """The contrast on which the word about a comparison depends, and the level of its test."""

    contrast: Sample
    level: float


def decide(comparisons: Sequence[Clauses]) -> list[str]:
    """The word about each comparison of a claim: held, not held or undecided."""
    found = iter(signs([one for clauses in comparisons for clause in clauses for one in clause]))
    words = []
    for clauses in comparisons:
        sides = [list(islice(found, len(clause))) for clause in clauses]
        if all(max(clause) > 0 for clause in sides):
            words.append(HELD)
        else:
            refuted = any(max(clause) < 0 for clause in sides)
            words.append(NOT_HELD if refuted else UNDECIDED)
    return words


def together(words: Sequence[str]) -> str:
    """The word about a claim: all its comparisons must hold."""
    if NOT_HELD in words:
        return NOT_HELD
    return UNDECIDED if UNDECIDED in words else HELD


def deciding(comparisons: Sequence[Clauses]) -> list[Deciding | None]:
    """For each comparison the best contrast of its worst clause; None if it has no clause."""
    every = [one for clauses in comparisons for clause in clauses for one in clause]
    levels = iter(holm([one.p_value() for one in every]))
    found: list[Deciding | None] = []
    for clauses in comparisons:
        tested = [map(Deciding, clause, islice(levels, len(clause))) for clause in clauses]
        best = [max(clause, key=_strength) for clause in tested]
        found.append(min(best, key=_strength, default=None))
    return found


def seeds_to_decide(comparisons: Sequence[Clauses]) -> int | None:
    """With how many seeds the same means and deviations would decide the claim; None if not even
    with MOST_SEEDS."""
    had = max(one.n for clauses in comparisons for clause in clauses for one in clause)
    least, most = had, MOST_SEEDS
    if _is_open(comparisons, most):
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if _is_open(comparisons, middle) else (least, middle)
    return most


def _is_open(comparisons: Sequence[Clauses], n: int) -> bool:
    """Whether the claim would be undecided with n seeds."""
    return together(decide([_with_seeds(clauses, n) for clauses in comparisons])) == UNDECIDED


def _with_seeds(clauses: Clauses, n: int) -> Clauses:
    return [_replaced(clause, n) for clause in clauses]


def _replaced(clause: list[Sample], n: int) -> list[Sample]:
    return [replace(one, n=n) for one in clause]


def _strength(one: Deciding) -> float:
    """The mean in half-widths of its interval."""
    half = one.contrast.half_width(one.level)
    if half:
        return one.contrast.mean / half
    return float("inf") * one.contrast.mean if one.contrast.mean else 0.0
