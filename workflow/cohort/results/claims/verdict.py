"""The verdict on a claim: on our runs, or on the paper's own values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cohort.results.claims.claim import Claim
from cohort.results.claims.decision import (
    HELD,
    LEANING,
    NOT_HELD,
    NOT_JUDGED,
    TIE,
    UNDECIDED,
    Clauses,
    decide,
    deciding_contrasts,
    overall_verdict,
)
from cohort.results.claims.evidence import (
    Evidence,
    evidence_of,
    evidence_text,
    missing_points,
    statistics_text,
    with_values,
)
from cohort.results.claims.matrix import Comparison
from cohort.results.claims.values import (
    Value,
    values_by_seed,
    with_common_seeds,
)
from cohort.results.intervals import ENOUGH_SEEDS, LEAST_SEEDS, NOT_ENOUGH
from cohort.results.names import Names
from cohort.results.paper import doubts

NO_PAPER = "no value"


@dataclass(frozen=True)
class Judgment:
    """The verdict on a claim, its evidence as text, and the value of each point, once.

    `statistics` are those of each point as text. `comparisons` are those of the claim one by one;
    `gap` says what is missing for a verdict. `doubtful` has the doubts about values.
    """

    verdict: str
    evidence: str
    values: list[Value]
    statistics: str = ""
    comparisons: Sequence[Evidence] = ()
    gap: str = ""
    doubtful: str = ""


def judge_runs(
    claim: Claim,
    comparisons: Sequence[Comparison],
    values: Sequence[Value],
    names: Names,
    *,
    judged: bool = True,
) -> Judgment:
    """Judge a claim on our runs. A scale that is not `judged`, or a planned run that is not
    finished, prevents a verdict.

    `values` are those of the points of all comparisons, in order.
    """
    pairs = with_values(comparisons, values)
    gap = _missing_runs_text(claim, comparisons, values, names)
    rows = [] if gap else [values_by_seed(own_values) for _, own_values in pairs]
    fewest = min((row.shape[1] for row in rows), default=0)
    if not gap and fewest < (1 if claim.is_over_settings else LEAST_SEEDS):
        noun = "seed" if fewest == 1 else "seeds"
        gap = f"{fewest} {noun} in common, at least {LEAST_SEEDS} are needed"
    verdict = NOT_ENOUGH if judged else NOT_JUDGED
    if judged and not gap:
        contrasts = [contrasts_of(claim, *pair) for pair in zip(comparisons, rows, strict=True)]
        evidence = _decided_evidence(claim, pairs, rows, contrasts, names)
        verdict = overall_verdict([part.verdict for part in evidence])
        has_few = fewest < ENOUGH_SEEDS and not claim.is_over_settings
        if has_few and verdict in (UNDECIDED, *LEANING.values()):
            gap = f"{fewest} seeds; a verdict needs at least {ENOUGH_SEEDS}"
    else:
        evidence = [evidence_of(claim, *pair, names) for pair in pairs]
    return Judgment(
        verdict,
        evidence_text(comparisons, evidence, gap, names),
        _values_of_points(comparisons, values),
        statistics_text(claim, comparisons, evidence, names),
        evidence,
        gap,
    )


def _decided_evidence(
    claim: Claim,
    pairs: Sequence[tuple[Comparison, list[Value]]],
    rows: Sequence[np.ndarray],
    contrasts: Sequence[Clauses],
    names: Names,
) -> list[Evidence]:
    """The evidence of every comparison in the seeds that all its points have, with the verdict by
    its contrasts; `rows` has the values of these seeds."""
    verdicts = decide(contrasts, every_run=claim.is_about_every_run())
    evidence = []
    for (comparison, values), row, verdict, deciding in zip(
        pairs, rows, verdicts, deciding_contrasts(contrasts), strict=True
    ):
        shared = with_common_seeds(values, row)
        evidence.append(evidence_of(claim, comparison, shared, names, verdict, deciding))
    return evidence


def judge_paper(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Judgment:
    """Judge a claim on the paper's own values, single ones without an interval, if enough.

    `values` are those of the points of all comparisons, in order.
    """
    evidence = [
        _paper_evidence(claim, comparison, own_values, names)
        for comparison, own_values in with_values(comparisons, values)
    ]
    verdicts = [part.verdict for part in evidence]
    missing = missing_points(claim, comparisons, values, names)
    has_some = any(value.is_complete for value in values)
    gap = f"no value for {missing}" if missing and has_some else ""
    return Judgment(
        overall_verdict(verdicts) if all(verdicts) else NO_PAPER,
        evidence_text(comparisons, evidence, gap, names),
        _values_of_points(comparisons, values),
        comparisons=evidence,
        gap=gap,
        doubtful=doubts(value.doubtful for value in values),
    )


def contrasts_of(claim: Claim, comparison: Comparison, rows: np.ndarray) -> Clauses:
    """A comparison's clauses of contrasts over seeds; `rows` has a row of values for each point."""
    clauses = claim.clauses(comparison, list(rows))
    return [list(map(claim.contrast, clause)) for clause in clauses]


def _paper_evidence(
    claim: Claim, comparison: Comparison, values: Sequence[Value], names: Names
) -> Evidence:
    """Judge a comparison by the paper's values, without the points that have none if the claim can
    do without; return the evidence."""
    pairs = zip(comparison.points, values, strict=True)
    points = [point for point, value in pairs if value.is_complete]
    if len(points) < len(values) and not claim.has_enough(points):
        return evidence_of(claim, comparison, values, names)
    part = replace(comparison, points=points)
    side = claim.side(part, [value.value for value in values if value.is_complete])
    level = UNDECIDED if claim.is_over_settings else TIE
    verdict = (NOT_HELD, level, HELD)[side + 1]
    return evidence_of(claim, comparison, values, names, verdict, part=part)


def _missing_runs_text(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> str:
    """A text that says which runs are missing; empty if none is."""
    points = _values_of_points(comparisons, values)
    missing = missing_points(claim, comparisons, values, names)
    unplanned = sum(not value.planned for value in points)
    gap = f"lacks runs of {missing}" if missing else ""
    return gap + (f" ({unplanned} of {len(points)} settings are not planned)" if unplanned else "")


def _values_of_points(comparisons: Sequence[Comparison], values: Sequence[Value]) -> list[Value]:
    """The value of each point, once; if comparisons disagree on it, that of fewest runs."""
    points = [point for comparison in comparisons for point in comparison.points]
    once: dict[tuple[str, ...], Value] = {}
    for point, value in zip(points, values, strict=True):
        once[point.key] = min(once.get(point.key, value), value, key=lambda shared: shared.n)
    return list(once.values())
