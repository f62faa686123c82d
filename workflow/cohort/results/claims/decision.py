"""Decides from the spread over seeds whether a claim holds, and how many seeds would decide it.

A comparison is a list of clauses, all of which must be true; a clause is true if one of its
contrasts, a difference seed by seed, is above 0. Held is an intersection-union test: each clause is
tested at 5 %, which its alternatives share. For not held Holm's correction covers all clauses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from cohort.core.durations import duration_text
from cohort.core.lazy import lazy
from cohort.results.intervals import ALPHA, ENOUGH_SEEDS, Sample, holm_levels

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

HELD, NOT_HELD, UNDECIDED, TIE = "held", "not held", "undecided", "tie"
LEANS_HELD, LEANS_NOT_HELD = "leans towards held", "leans towards not held"
LEANING = {HELD: LEANS_HELD, NOT_HELD: LEANS_NOT_HELD}
HOLDS = (HELD, LEANS_HELD)
SHOWN_ORDER = (HELD, NOT_HELD, LEANS_HELD, LEANS_NOT_HELD, TIE, UNDECIDED)
CROSS, OPEN, EQUAL = "✗", "?", "="
MARKS = {NOT_HELD: CROSS, LEANS_NOT_HELD: CROSS, UNDECIDED: OPEN, TIE: EQUAL}
NOT_JUDGED = "not judged at this scale"
MOST_SEEDS = 1000  # beyond which nobody would go
DRAWS, RANGE = 100, (0.1, 0.9)  # of the means and deviations that the seeds leave possible

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


def seeds_to_decide(comparisons: Sequence[Clauses]) -> tuple[int, int]:
    """Estimate how many seeds would decide the claim, as the 10th and 90th percentiles.

    True means and deviations are drawn from their posterior given the seeds so far, under the usual
    uninformative prior. MOST_SEEDS + 1 means that even MOST_SEEDS would not be enough.
    """
    rng = np.random.default_rng(0)
    draw = partial(_drawn_contrast, rng=rng)
    needed = sorted(_seeds_needed(_map_contrasts(comparisons, draw)) for _ in range(DRAWS))
    low, high = (needed[round(share * (DRAWS - 1))] for share in RANGE)
    return low, high


def more_seeds_text(seeds: tuple[int, int], seen: int, seconds: float) -> str:
    """A text on how many seeds, a range, would decide a claim, and how long the fewest further ones
    would take at `seconds` each; `seen` seeds have run."""
    fewest, _ = seeds
    if fewest > MOST_SEEDS:
        return f"more than {MOST_SEEDS} seeds would be needed to decide it"
    more = fewest - seen
    cost = f", about {duration_text(more * seconds)}" if seconds == seconds else ""
    return (
        f"{seeds_text(seeds)} seeds would decide it (10 to 90 % of what these seeds leave "
        f"possible; at least {more} more{cost})"
    )


def seeds_text(seeds: tuple[int, int]) -> str:
    """A range of numbers of seeds as text."""
    low, high = (f"more than {MOST_SEEDS}" if count > MOST_SEEDS else str(count) for count in seeds)
    return low if low == high else f"{low} to {high}"


def _seeds_needed(comparisons: Sequence[Clauses]) -> int:
    """The smallest number of seeds that decides the claim with exactly these means and
    deviations."""
    contrasts = (contrast for clauses in comparisons for clause in clauses for contrast in clause)
    seen = max(contrast.n for contrast in contrasts)
    least, most = max(seen, ENOUGH_SEEDS - 1), MOST_SEEDS + 1
    while most - least > 1:
        middle = (least + most) // 2
        expected = _map_contrasts(comparisons, partial(_expected_contrast, n=middle))
        is_open = overall_verdict(decide(expected)) in (UNDECIDED, TIE)
        least, most = (middle, most) if is_open else (least, middle)
    return most


def _map_contrasts(
    comparisons: Sequence[Clauses], change: Callable[[Sample], Sample]
) -> list[Clauses]:
    """The comparisons with `change` applied to each contrast."""
    changed = []
    for clauses in comparisons:
        changed.append([list(map(change, clause)) for clause in clauses])
    return changed


def _drawn_contrast(contrast: Sample, rng: np.random.Generator) -> Sample:
    """The contrast with a mean and a deviation drawn from their posterior."""
    n = contrast.n
    sd = contrast.sd * float(np.sqrt((n - 1) / rng.chisquare(n - 1)))
    return replace(contrast, mean=contrast.mean + sd / np.sqrt(n) * float(rng.normal()), sd=sd)


def _expected_contrast(contrast: Sample, n: int) -> Sample:
    """The contrast as n seeds with the same mean and deviation would show it; as many are above 0
    as of a normal distribution."""
    share = float(special.ndtr(contrast.mean / contrast.sd)) if contrast.sd else contrast.mean > 0
    above = round(n * share)
    return replace(contrast, n=n, above=above, below=n - above)


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
