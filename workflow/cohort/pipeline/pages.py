"""The spec of a study's page: plain data, ready for JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from cohort.core import own
from cohort.core.paths import Layout
from cohort.figures import KINDS
from cohort.figures.style import Style
from cohort.pipeline.specs import Spec, look, titles
from cohort.plan import Plan, Study
from cohort.plan.cost import START_SECONDS, round_seconds
from cohort.plan.scale import FULL
from cohort.plan.study import Experiment
from cohort.tables.sizes import needs_no_runs


def page_spec(plan: Plan, name: str, layout: Layout | None = None) -> Spec:
    """The spec of a study's page. `layout` says where its files lie; the plan's own by default."""
    study, layout = plan.study(name), layout or plan.layout
    return {
        "name": name,
        "title": study.title,
        "description": study.description,
        "source": study.source,
        "scale": plan.scale,
        "notes": study.notes,
        "my": {module: own.version_of(module) for module in own.modules()},
        "titles": titles(plan, name, study.strategies(study.experiments)),
        "experiments": {
            key: {"runs": layout.runs(name, key), "seconds": _estimates(plan, experiment)}
            for key, experiment in study.experiments.items()
        },
        "figures": [_figure(plan, study, key, layout) for key in study.figures],
        "tables": [_table(plan, study, key, layout) for key in study.tables],
        "claims": layout.claims(name) if study.claims else [],
        "claims_command": command(plan, f"{name}_claims"),
        "command": command(plan, name),
    }


def command(plan: Plan, target: str) -> str:
    """The command that makes a target at the plan's scale."""
    return f"snakemake {target}" + (f" --config scale={plan.scale}" if plan.scale != FULL else "")


def _estimates(plan: Plan, experiment: Experiment) -> dict[str, float]:
    """The estimated seconds of each cell on one CPU core, to three digits, by digest."""
    found = {}
    for row in experiment.rows:
        settings = plan.cells[row.digest].settings
        seconds = START_SECONDS + round_seconds(settings, plan.datasets[settings["dataset"]])
        found[row.digest] = float(f"{seconds:.3g}")
    return found


def _figure(plan: Plan, study: Study, name: str, layout: Layout) -> Spec:
    spec = study.figures[name]
    kind_class = KINDS[spec["kind"]]
    fields = [field.name for field in dataclasses.fields(kind_class)]
    kind = kind_class(**{key: spec[key] for key in fields if key in spec})
    style = Style.of(look(plan, study.name, spec["experiment"]))
    return _item(plan, study, name, spec, layout) | {
        "files": layout.figure(study.name, name),
        "kind": spec["kind"],
        "x": kind.x_title(style),
        "y": [part.y_title() for part in kind.parts()],
        "shown": list(kind.facets()),
        "metric": kind.metric,
        "at": spec.get("at", "last"),
    }


def _table(plan: Plan, study: Study, name: str, layout: Layout) -> Spec:
    spec = study.tables[name]
    kept: dict[str, Any] = {key: spec[key] for key in ("kind", "joined") if key in spec}
    return _item(plan, study, name, spec, layout) | {"files": layout.table(study.name, name)} | kept


def _item(plan: Plan, study: Study, name: str, spec: Spec, layout: Layout) -> Spec:
    """What figures and tables have in common; one of sizes has no experiment."""
    needs_runs = not needs_no_runs(spec)
    return {
        "name": name,
        "title": spec.get("title", name),
        "caption": spec.get("caption", ""),
        "experiment": spec["experiment"] if needs_runs else "",
        "metrics": layout.metrics(study.name, spec["experiment"]) if needs_runs else "",
        "orders": look(plan, study.name, spec["experiment"])["orders"],
        "command": command(plan, f"{study.name}_{name}"),
    }
