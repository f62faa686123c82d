"""Results from the records that exist: `cohort check` judges claims by them and by the paper's own
values, `cohort draw` draws a study, a figure or a table."""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from cohort.commands import shared, status
from cohort.core.errors import UserError, check_allowed
from cohort.pipeline.preview import collect_partial, draw_item, draw_studies
from cohort.pipeline.stages import claims_spec
from cohort.plan import Plan, require_study
from cohort.plan.study import claimed_experiments
from cohort.results.claims.judged import NOT_HELD, JudgedClaim, judged_claims


def check_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_config(parser, "scale", "seeds")
    text = "a claim STUDY.CLAIM, with its evidence, or a whole study"
    parser.add_argument("claim", metavar="CLAIM", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def check_command(options: argparse.Namespace) -> None:
    """Print what the paper's values and our runs say of a claim, or of each claim of a study."""
    study, _, name = options.claim.partition(".")
    plan = shared.load_plan(options, studies=require_study(study), only="")
    spec = claims_spec(plan, study)
    if not spec["claims"]:
        raise UserError(f"{study} has no claims")
    if name:
        check_allowed(name, spec["claims"], f"{study} has no claim '{name}'")
        spec["claims"] = {name: spec["claims"][name]}
    used = claimed_experiments(spec["claims"].values())
    with tempfile.TemporaryDirectory(prefix="cohort-check-") as folder:
        keys = [key for key in spec["metrics"] if key in used]
        spec["metrics"] = {key: collect_partial(plan, study, key, folder) for key in keys}
        claims = judged_claims(spec)
    data = {"study": study, "scale": plan.scale, "claims": list(map(asdict, claims))}
    if name:
        lines = _details(plan, study, claims, reproduces=spec["reproduces"])
    else:
        lines = _overview(plan, claims, reproduces=spec["reproduces"])
    shared.report(lines, lambda: data, as_json=options.json)


def _overview(plan: Plan, claims: Sequence[JudgedClaim], *, reproduces: bool) -> Iterator[str]:
    """Yield a table with a line per claim, and sentences on how many have each verdict."""
    titles, rows = ["claim", *(["paper"] if reproduces else []), "our runs", "finished"], []
    for claim in claims:
        paper = [claim.paper] if reproduces else []
        rows.append([claim.claim, *paper, claim.measured, f"{claim.n} of {claim.planned}"])
    yield from shared.table(titles, rows)
    ours = _counts(claim.measured for claim in claims)
    yield shared.prose(f"our runs, scale {plan.scale}: {ours}")
    if reproduces:
        yield shared.prose(f"the paper's own values: {_counts(claim.paper for claim in claims)}")
        if contradicted := [claim.claim for claim in claims if claim.paper == NOT_HELD]:
            yield shared.prose(f"the paper contradicts itself: {', '.join(contradicted)}")


def _counts(verdicts: Iterable[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common())


def _details(
    plan: Plan, study: str, claims: Sequence[JudgedClaim], *, reproduces: bool
) -> Iterator[str]:
    """Yield lines with each claim's sentence, both verdicts and evidence, and contradictions."""
    for claim in claims:
        name = f"{study}.{claim.claim}"
        yield f"{name}: {claim.says} ({claim.where})"
        if reproduces:
            yield f"  the paper's own values: {claim.paper}. {claim.paper_evidence}".rstrip()
        if claim.doubtful:
            yield f"  doubtful: {claim.doubtful}"
        runs = f"our runs ({claim.n} of {claim.planned}, scale {plan.scale})"
        yield f"  {runs}: {claim.measured}. {claim.measured_evidence}"
        if claim.paper == NOT_HELD:
            yield f"the paper contradicts itself: its own values do not bear out {name}"


def draw_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_config(parser, "scale", "seeds")
    text = f"a study, or a figure or table STUDY.NAME (default: {shared.LISTED})"
    parser.add_argument("studies", nargs="*", metavar="WHAT", help=text)


def draw_command(options: argparse.Namespace) -> None:
    """Draw studies, figures and tables from what exists; print the paths of pages and files."""
    items = [text for text in options.studies if "." in text]
    options.studies = [text for text in options.studies if "." not in text]
    for item in (status.find_item(text, options) for text in items):
        print(*draw_item(item.plan, item.study, item.name), sep="\n")
    if options.studies or not items:
        plan = shared.load_plan(options)
        print(*draw_studies(plan, plan.listed), sep="\n")
