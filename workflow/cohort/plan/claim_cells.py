"""Resolves the claims of a study to comparisons of cells before anything is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from cohort.core.errors import UserError
from cohort.plan.axes import Values
from cohort.plan.located import errors_at
from cohort.results.at import check_at
from cohort.results.claims import CLAIMS, Claim, Comparison, Matrix
from cohort.results.claims.values import paper_results
from cohort.results.paper import paper_files


def resolve_claims(
    claims: Mapping[str, Values], matrix: Matrix, shares: Mapping[str, float], study: str
) -> dict[str, Values]:
    """Check each claim; add its comparisons and the shares of rounds of its experiments.

    `shares` is, by experiment, the fraction of its rounds that this scale trains.
    """
    if not claims:
        return {}
    resolved = {}
    for name, spec in claims.items():
        with errors_at(f"claims.{name}"):
            resolved[name] = _resolved_claim(spec, matrix, shares, study)
    return resolved


def _resolved_claim(
    spec: Values, matrix: Matrix, shares: Mapping[str, float], study: str
) -> Values:
    claim = CLAIMS[spec["kind"]].from_spec(spec)
    claim.check()
    comparisons = claim.planned_comparisons(matrix)
    _check_rounds(comparisons)
    _check_paper(claim, comparisons, study)
    experiments = [point.experiment for comparison in comparisons for point in comparison.points]
    return spec | {
        "rounds": {name: shares[name] for name in dict.fromkeys([claim.experiment, *experiments])},
        "comparisons": [dataclasses.asdict(comparison) for comparison in comparisons],
    }


def _check_rounds(comparisons: list[Comparison]) -> None:
    """Reject a claim about a round that the compared runs do not reach."""
    for point in (point for comparison in comparisons for point in comparison.points):
        owner = f"runs of {point.experiment} that it compares"
        check_at(point.at, point.rounds, owner)


def _check_paper(claim: Claim, comparisons: list[Comparison], study: str) -> None:
    """Reject a paper's item that is unknown, fits nothing compared, or has two values for a
    point."""
    if not claim.paper:
        return
    points = [point for comparison in comparisons for point in comparison.points]
    results = paper_results(study, points, claim.paper)
    if not any(value or curve for value, curve in results):
        files = " or ".join(map(str, paper_files(study)))
        raise UserError(
            f"paper is '{claim.paper}', but no value of it in {files} fits what is compared "
            f"({claim.metric}, at {claim.at}); compare their labels"
        )
