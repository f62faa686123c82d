"""The specs that drawing, tabulating, judging and reporting get: plain data, ready for JSON.

`layout` says where the files lie; the plan's own if it is not given.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from cohort.core import user_files
from cohort.core.paths import Layout, experiment_plan_file
from cohort.plan import Plan, Row, Study, cost
from cohort.results.names import BASELINE
from cohort.results.paper import paper_files
from cohort.results.series import FULL

Spec = dict[str, Any]


def experiment_plan(plan: Plan, study: str, experiment: str) -> tuple[str, Spec]:
    """The plan of an experiment for `collect`, its cells with their labels, and the path to freeze
    it at, whose name holds a digest of the content."""
    cells = []
    for row in plan.study(study).experiments[experiment].rows:
        planned = plan.cells[row.digest]
        cell: Spec = {"digest": row.digest, "path": planned.path, "labels": row.labels}
        cell |= {"generated": True} if planned.generated else {}
        cells.append(cell | ({"share": row.share} if row.share != 1 else {}))
    content = {"study": study, "experiment": experiment, "cells": cells}
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    return experiment_plan_file(study, experiment, digest), content


def spec_of(plan: Plan, study: str, name: str) -> Spec:
    """The spec of a figure or table: its entry in the study, and how to show its values."""
    spec = plan.study(study).drawn_items()[name]
    paper = plan.study(study).paper_file(spec)
    return {
        **spec,
        "study": study,
        "name": name,
        "scale": plan.scale,
        "look": look_of(plan, study, spec["experiment"]),
        **({"paper_values": str(paper)} if paper else {}),
    }


def look_of(plan: Plan, study: str, experiment: str) -> Spec:
    """How a figure or table shows an experiment's labels: order, titles, colors; word for a round.

    Strategies have the order and the colors of the whole study: FedAvg the first one, then those of
    its figures.
    """
    expanded = plan.study(study)
    in_order = expanded.strategies(expanded.experiments)
    drawn = [figure["experiment"] for figure in expanded.figures.values()]
    strategies = expanded.strategies([*drawn, *expanded.experiments])
    axes, rows = expanded.experiments[experiment].axes, expanded.experiments[experiment].rows
    names = sorted(axes["strategy"], key=in_order.index)
    round_names = {plan.cells[row.digest].procedure.round_name for row in rows}
    return {
        "orders": axes | {"strategy": names},
        "strategies": sorted(strategies, key=lambda name: name != BASELINE),
        "methods": expanded.methods,
        "titles": _titles_of(plan, expanded, names),
        "round": round_names.pop() if len(round_names) == 1 else "Round",
    }


def _titles_of(plan: Plan, study: Study, strategies: Iterable[str]) -> dict[str, dict[str, str]]:
    """The titles of label values: the study's own, and config/strategies.yaml's for others."""
    defaults = {name: plan.strategies[name]["title"] for name in strategies}
    return study.titles | {"strategy": defaults | study.titles.get("strategy", {})}


def claims_spec(plan: Plan, name: str, layout: Layout | None = None) -> Spec:
    """The spec by which a study's claims are judged."""
    study, layout = plan.study(name), layout or plan.layout
    return {
        "study": name,
        "scale": plan.scale,
        "reproduces": any(file.exists() for file in paper_files(name)),
        "claims": study.claims,
        "titles": _titles_of(plan, study, study.strategies(study.claimed())),
        "metrics": {key: layout.metrics(name, key) for key in study.claimed()},
    }


def page_spec(plan: Plan, name: str, layout: Layout | None = None) -> Spec:
    """The spec of a study's page."""
    study, layout = plan.study(name), layout or plan.layout
    items = {}
    for key, spec in study.drawn_items().items():
        files = layout.figure if key in study.figures else layout.table
        items[key] = spec_of(plan, name, key) | {
            "title": spec.get("title", key),
            "caption": spec.get("caption", ""),
            "metrics": layout.metrics(name, spec["experiment"]),
            "files": files(name, key),
            "command": _target_command(plan, f"{name}_{key}"),
        }
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
        "titles": _titles_of(plan, study, study.strategies(study.experiments)),
        "experiments": {
            key: {"runs": layout.runs(name, key), "seconds": _seconds(plan, experiment.rows)}
            for key, experiment in study.experiments.items()
        },
        "figures": [items[key] for key in study.figures],
        "tables": [items[key] for key in study.tables],
        "claims": layout.claims(name) if study.claims else [],
        "quotes": {key: _quotes(claim) for key, claim in study.claims.items()},
        "claims_command": _target_command(plan, f"{name}_claims"),
        "command": _target_command(plan, name),
    }


def _target_command(plan: Plan, target: str) -> str:
    """The Snakemake command that makes a target at the plan's scale, with as many seeds."""
    config = [f"scale={plan.scale}"] if plan.scale != FULL else []
    config += [f"seeds={plan.config['seeds']}"] if plan.config.get("seeds") else []
    return " ".join(["snakemake", target, *(["--config", *config] if config else [])])


def _quotes(claim: Spec) -> dict[str, str]:
    """The paper's sentence that a claim quotes, the paper's numbers against it, and a reading."""
    return {key: str(claim.get(key, "")) for key in ("quote", "against", "reading")}


def _seconds(plan: Plan, rows: Iterable[Row]) -> dict[str, float]:
    """Estimate the seconds of each cell on one CPU core, to three digits, by digest."""
    estimates = {}
    for row in rows:
        cell = plan.cells[row.digest]
        seconds = cost.START_SECONDS + cost.round_seconds(cell, plan.dataset_info(cell))
        estimates[row.digest] = float(f"{seconds:.3g}")
    return estimates
