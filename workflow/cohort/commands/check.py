"""`cohort check`: claims, judged at once by the paper's own values and the records that exist."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.pipeline.preview import collect_partial
from cohort.pipeline.specs import claims_spec
from cohort.plan import Plan, all_studies, load
from cohort.results.claims.decision import NOT_HELD
from cohort.results.claims.judge import judged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the claim."""
    parser.add_argument(
        "claim",
        metavar="CLAIM",
        help="a claim (STUDY.CLAIM where two studies have one of that name), or a whole study",
    )
    parser.add_argument("--scale", help="a scale of config/scales.yaml (config.yaml's by default)")


def run(options: argparse.Namespace) -> None:
    """Print what the paper's values and our runs say of the claim, and contradictions."""
    plan, study, claims = find_claims(options.claim, options.scale)
    contradicted = []
    spec = _spec(plan, study, claims)
    for claim in judged(spec):
        print(f"{study}.{claim.claim}: {claim.says} ({claim.where})")
        if spec["reproduces"]:
            print(f"  the paper's own values: {claim.paper}. {claim.paper_evidence}".rstrip())
        if claim.doubtful:
            print(f"  doubtful: {claim.doubtful}")
        print(
            f"  our runs ({claim.n} of {claim.planned}, scale {plan.scale}): "
            f"{claim.measured}. {claim.measured_evidence}"
        )
        contradicted += [claim.claim] if claim.paper == NOT_HELD else []
    for name in contradicted:
        print(f"the paper contradicts itself: its own values do not bear out {study}.{name}")


def find_claims(text: str, scale: str | None) -> tuple[Plan, str, dict[str, Any]]:
    """The plan of the study that has a claim of this name, the study, and the claim; all claims
    where a study is named."""
    named, _, claim = text.rpartition(".")
    every = all_studies()
    overrides = {"scale": scale} if scale else {}
    studies = [text] if text in every else [named] if named in every else every
    matches = []
    names: list[str] = []
    for study in studies:
        plan = load(overrides | {"studies": study, "only": ""})
        claims = plan.study(study).claims
        names += claims
        if study == text and claims:
            return plan, study, claims
        if claim in claims:
            matches.append((plan, study, {claim: claims[claim]}))
    if len(matches) > 1:
        where = " and ".join(f"{study}.{claim}" for _, study, _ in matches)
        raise UserError(f"'{text}' is the name of several claims; name {where}")
    if not matches:
        raise UserError(f"there is no claim '{text}'{suggest(claim, names)}")
    return matches[0]


def _spec(plan: Plan, study: str, claims: Mapping[str, Any]) -> dict[str, Any]:
    """The spec to judge these claims by, with metrics collected from what exists."""
    spec = claims_spec(plan, study) | {"claims": claims}
    points = [
        point["experiment"]
        for claim in claims.values()
        for comparison in claim["comparisons"]
        for point in comparison["points"]
    ]
    used = [name for name in dict.fromkeys(points) if name in spec["metrics"]]
    return spec | {"metrics": {name: collect_partial(plan, study, name) for name in used}}
