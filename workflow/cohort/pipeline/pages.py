"""The spec of a study's page: plain data, ready for JSON."""

from __future__ import annotations

from cohort.core import user_files
from cohort.core.paths import Layout
from cohort.pipeline.specs import Spec, spec_of, titles_of
from cohort.plan import Plan, Study
from cohort.plan.axes import Values
from cohort.plan.cost import START_SECONDS, round_seconds
from cohort.plan.study import Experiment
from cohort.results.series import FULL


def page_spec(plan: Plan, name: str, layout: Layout | None = None) -> Spec:
    """The spec of a study's page. `layout` says where its files lie; the plan's by default."""
    study, layout = plan.study(name), layout or plan.layout
    return {
        "name": name,
        "title": study.title,
        "question": study.question,
        "findings": [finding["text"] for finding in study.findings],
        "key_figure": study.key_figure,
        "description": study.description,
        "source": study.source,
        "scale": plan.scale,
        "notes": study.notes,
        "my": {module: user_files.version_of(module) for module in user_files.modules()},
        "titles": titles_of(plan, name, study.strategies(study.experiments)),
        "experiments": {
            key: {"runs": layout.runs(name, key), "seconds": _estimates(plan, experiment)}
            for key, experiment in study.experiments.items()
        },
        "figures": [_item_spec(plan, study, key, layout) for key in study.figures],
        "tables": [_item_spec(plan, study, key, layout) for key in study.tables],
        "claims": layout.claims(name) if study.claims else [],
        "quotes": {key: _quotes(claim) for key, claim in study.claims.items()},
        "claims_command": target_command(plan, f"{name}_claims"),
        "command": target_command(plan, name),
    }


def _quotes(claim: Values) -> dict[str, str]:
    """The paper's sentence that a claim quotes, the paper's numbers against it, and a reading."""
    return {key: str(claim.get(key, "")) for key in ("quote", "against", "reading")}


def target_command(plan: Plan, target: str) -> str:
    """The Snakemake command that makes a target at the plan's scale, with as many seeds."""
    config = [f"scale={plan.scale}"] if plan.scale != FULL else []
    config += [f"seeds={plan.config['seeds']}"] if plan.config.get("seeds") else []
    return " ".join(["snakemake", target, *(["--config", *config] if config else [])])


def _estimates(plan: Plan, experiment: Experiment) -> dict[str, float]:
    """Estimate the seconds of each cell on one CPU core, to three digits, by digest."""
    estimates = {}
    for row in experiment.rows:
        cell = plan.cells[row.digest]
        seconds = START_SECONDS + round_seconds(cell, plan.dataset_info(cell))
        estimates[row.digest] = float(f"{seconds:.3g}")
    return estimates


def _item_spec(plan: Plan, study: Study, name: str, layout: Layout) -> Spec:
    """The spec of a figure or table with its metrics, files and command."""
    spec = spec_of(plan, study.name, name)
    files = layout.figure if name in study.figures else layout.table
    return spec | {
        "title": spec.get("title", name),
        "caption": spec.get("caption", ""),
        "metrics": layout.metrics(study.name, spec["experiment"]),
        "files": files(study.name, name),
        "command": target_command(plan, f"{study.name}_{name}"),
    }
