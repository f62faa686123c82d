"""The verdict on a claim: on our runs, or on the paper's own values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cohort.claims.claim import Claim
from cohort.claims.decision import (
    HELD,
    NOT_ENOUGH,
    NOT_HELD,
    NOT_JUDGED,
    TIE,
    UNDECIDED,
    Clauses,
    decide,
    deciding,
    seeds_to_decide,
    together,
)
from cohort.claims.evidence import (
    Valued,
    each,
    evidence,
    key,
    lacking,
    more_seeds,
    statistics,
    too_few,
)
from cohort.claims.matrix import Comparison
from cohort.claims.values import NOTHING, Value, by_seed, with_common_seeds
from cohort.metrics.intervals import LEAST_SEEDS
from cohort.metrics.names import Names

NO_PAPER = "no value"


@dataclass(frozen=True)
class Verdict:
    """The verdict in a word, its evidence as text, and the value of each point, once.

    `statistics` are those of each point as text; `seeds` is the range of how many seeds would
    decide a claim that is undecided. `found` are the comparisons one by one; `gap` says what
    is missing for a word, or for a clearer one.
    """

    word: str
    evidence: str
    values: list[Value]
    statistics: str = ""
    seeds: tuple[int, int] | None = None
    found: Sequence[Valued] = ()
    gap: str = ""


def judge_runs(
    claim: Claim,
    comparisons: Sequence[Comparison],
    values: Sequence[Value],
    names: Names,
    *,
    judged: bool = True,
    seconds: Callable[[], float] = lambda: NOTHING,
) -> Verdict:
    """Judge a claim on our runs; there is no word at a scale that is not `judged`, nor before all
    runs are finished.

    `values` are those of the points of all comparisons, in order; `seconds` is how long the runs of
    one seed take.
    """
    found = [Valued(one, mine, _complete(mine)) for one, mine in each(comparisons, values)]
    points = list(_once(comparisons, values).values())
    gap = _gap(comparisons, values, names)
    seeds = [by_seed(one.values) for one in found if one.whole]
    fewest = min((rows.shape[1] for rows in seeds), default=0)
    needed, word = None, NOT_ENOUGH if judged else NOT_JUDGED
    if not gap and fewest < (1 if claim.is_over_settings else LEAST_SEEDS):
        gap = too_few(fewest)
    if judged and not gap:
        contrasts = [
            contrasts_of(claim, one.comparison, rows)
            for one, rows in zip(found, seeds, strict=True)
        ]
        words = decide(contrasts, every_run=claim.is_about_every_run())
        found = [
            replace(one, values=with_common_seeds(one.values, rows), word=word, deciding=clear)
            for one, rows, word, clear in zip(found, seeds, words, deciding(contrasts), strict=True)
        ]
        word = together(words)
        if word == UNDECIDED and not claim.is_over_settings:
            needed = seeds_to_decide(contrasts)
            gap = more_seeds(needed, fewest, seconds())
    text, each_point = evidence(claim, found, names, gap), statistics(claim, found, names)
    return Verdict(word, text, points, each_point, needed, found, gap)


def judge_paper(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Verdict:
    """Judge a claim on the paper's own values, single ones without an interval, if it has enough of
    them.

    `values` are those of the points of all comparisons, in order.
    """
    found = [_held_up(claim, one, mine) for one, mine in each(comparisons, values)]
    some = any(value.known for value in values)
    words, missing = [one.word for one in found], lacking(comparisons, values, names)
    gap = f"no value for {missing}" if missing and some else ""
    word = together(words) if all(words) else NO_PAPER
    points = list(_once(comparisons, values).values())
    return Verdict(word, evidence(claim, found, names, gap), points, found=found, gap=gap)


def contrasts_of(claim: Claim, comparison: Comparison, rows: np.ndarray) -> Clauses:
    """What a comparison asks, as samples over the seeds; `rows` has a row for each point."""
    clauses = claim.clauses(comparison, list(rows))
    return [list(map(claim.contrast, clause)) for clause in clauses]


def _complete(values: Sequence[Value]) -> bool:
    return all(value.known for value in values)


def _held_up(claim: Claim, comparison: Comparison, values: list[Value]) -> Valued:
    """Whether a comparison holds, without the points that have no value if it can do without."""
    known = [
        (point, value)
        for point, value in zip(comparison.points, values, strict=True)
        if value.known
    ]
    points = [point for point, _ in known]
    whole = len(known) == len(values)
    if not whole and not claim.has_enough(points):
        return Valued(comparison, values, False)
    kept, mine = replace(comparison, points=points), [value for _, value in known]
    side = claim.side(kept, [value.value for value in mine])
    level = UNDECIDED if claim.is_over_settings else TIE
    return Valued(kept, mine, True, (NOT_HELD, level, HELD)[side + 1])


def _gap(comparisons: Sequence[Comparison], values: Sequence[Value], names: Names) -> str:
    """Which runs are missing."""
    points, missing = _once(comparisons, values).values(), lacking(comparisons, values, names)
    unplanned = sum(not value.planned for value in points)
    gap = f"lacks runs of {missing}" if missing else ""
    return gap + (f" ({unplanned} of {len(points)} settings are not planned)" if unplanned else "")


def _once(
    comparisons: Sequence[Comparison], values: Sequence[Value]
) -> dict[tuple[str, ...], Value]:
    """The value of each point, even if several comparisons share it; if they differ, that of fewest
    runs."""
    points = [point for comparison in comparisons for point in comparison.points]
    found: dict[tuple[str, ...], Value] = {}
    for point, value in zip(points, values, strict=True):
        found[key(point)] = min(found.get(key(point), value), value, key=lambda one: one.n)
    return found
