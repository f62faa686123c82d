"""Claims of a study, checked against the cells of its experiments before any of them is trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from cohort.claims import CLAIMS, Claim, Comparison, Matrix
from cohort.claims.paper import Paper, paper_files
from cohort.claims.values import ENDED_EARLY
from cohort.core.errors import UserError
from cohort.plan.axes import Values


def resolve(
    claims: Mapping[str, Values], matrix: Matrix, shares: Mapping[str, float], study: str, file: str
) -> dict[str, Values]:
    """Each claim with the comparisons that it makes, and the share of their rounds that the runs of each experiment have at this scale."""
    if not claims:
        return {}
    paper = Paper(study)
    return {
        name: _resolved(spec, matrix, shares, paper, study, f"{file}: claims.{name}")
        for name, spec in claims.items()
    }


def _resolved(
    spec: Values, matrix: Matrix, shares: Mapping[str, float], paper: Paper, study: str, where: str
) -> Values:
    claim = CLAIMS[spec["kind"]](**{key: value for key, value in spec.items() if key != "kind"})
    try:
        claim.check()
        comparisons = claim.resolved(matrix)
        _check_rounds(comparisons, matrix)
        _check_paper(claim, comparisons, paper, study)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    named = dict.fromkeys(
        [claim.experiment, *(point.experiment for one in comparisons for point in one.points)]
    )
    rounds = {experiment: shares[experiment] for experiment in named}
    return spec | {
        "rounds": rounds,
        "comparisons": [dataclasses.asdict(one) for one in comparisons],
    }


def _check_rounds(comparisons: list[Comparison], matrix: Matrix) -> None:
    """Refuse a round that runs do not reach."""
    for point in (point for one in comparisons for point in one.points):
        if isinstance(point.at, int) and (rounds := matrix.rounds(point)) < ENDED_EARLY * point.at:
            raise UserError(
                f"at is {point.at}, but runs of {point.experiment} that it compares end after {rounds} rounds"
            )


def _check_paper(claim: Claim, comparisons: list[Comparison], paper: Paper, study: str) -> None:
    """Refuse an item of the paper that is not known, that fits nothing compared, or that says two things of one point."""
    if not claim.paper:
        return
    found = paper.of([point for one in comparisons for point in one.points], claim.paper)
    if not any(said.value or said.curve for said in found):
        files = " or ".join(map(str, paper_files(study)))
        raise UserError(
            f"paper is '{claim.paper}', but no value of it in {files} fits what is compared ({claim.metric}, at {claim.at}); "
            "compare their labels"
        )
