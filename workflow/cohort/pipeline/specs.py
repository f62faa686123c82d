"""The specs that drawing, tabulating, judging and reporting get: plain data, ready for JSON.

`layout` says where the files lie; the plan's own if it is not given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from cohort.core.paths import Layout, experiment_plan_file
from cohort.plan import Plan
from cohort.results.measure import BASELINE
from cohort.results.paper import paper_files

Spec = dict[str, Any]


def experiment_plan(plan: Plan, study: str, experiment: str) -> Spec:
    """The plan of an experiment for `collect`: its cells with their labels."""
    cells = []
    for row in plan.study(study).experiments[experiment].rows:
        planned = plan.cells[row.digest]
        cell: Spec = {"digest": row.digest, "path": planned.path, "labels": row.labels}
        cell |= {"generated": True} if planned.generated else {}
        cells.append(cell | ({"share": row.share} if row.share != 1 else {}))
    return {"study": study, "experiment": experiment, "cells": cells}


def frozen_experiment_path(content: Spec) -> str:
    """The path of an experiment's frozen plan, whose name holds a digest of the content."""
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]
    return experiment_plan_file(content["study"], content["experiment"], digest)


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
    experiments = plan.study(study).experiments
    in_order = plan.study(study).strategies(experiments)
    drawn = [figure["experiment"] for figure in plan.study(study).figures.values()]
    strategies = plan.study(study).strategies([*drawn, *experiments])
    axes = plan.study(study).experiments[experiment].axes
    rows = plan.study(study).experiments[experiment].rows
    names = sorted(axes["strategy"], key=in_order.index)
    round_names = {plan.cells[row.digest].procedure.round_name for row in rows}
    return {
        "orders": axes | {"strategy": names},
        "strategies": sorted(strategies, key=lambda name: name != BASELINE),
        "methods": plan.study(study).methods,
        "titles": titles_of(plan, study, names),
        "round": round_names.pop() if len(round_names) == 1 else "Round",
    }


def titles_of(plan: Plan, study: str, strategies: Iterable[str]) -> dict[str, dict[str, str]]:
    """The titles of label values: the study's own, and config/strategies.yaml's for others."""
    own = plan.study(study).titles
    defaults = {name: plan.strategies[name]["title"] for name in strategies}
    return own | {"strategy": defaults | own.get("strategy", {})}


def claims_spec(plan: Plan, name: str, layout: Layout | None = None) -> Spec:
    """The spec by which a study's claims are judged."""
    study, layout = plan.study(name), layout or plan.layout
    return {
        "study": name,
        "scale": plan.scale,
        "reproduces": any(file.exists() for file in paper_files(name)),
        "claims": study.claims,
        "titles": titles_of(plan, name, study.strategies(study.claimed())),
        "metrics": {key: layout.metrics(name, key) for key in study.claimed()},
    }
