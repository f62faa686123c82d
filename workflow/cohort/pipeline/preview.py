"""Figures, tables and page from the records that exist, at any time and without training; unfinished cells are shown and marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cohort.pipeline.stages import claims_spec, experiment_file, experiment_plan, page_spec, spec_of
from cohort.plan import Plan


def partial_folder(scale: str) -> Path:
    """Where they are drawn, never over the workflow's own outputs, which Snakemake would then take for current."""
    return Path("results", scale, "partial")


def draw_partial(plan: Plan, name: str) -> Path:
    """Draw a study; the path of its page."""
    from cohort.claims.judge import judge
    from cohort.core.files import write_text
    from cohort.figures.draw import draw
    from cohort.metrics.collect import collect
    from cohort.pipeline.unfinished import result_so_far
    from cohort.report.page import write_page
    from cohort.tables.tabulate import tabulate

    study = plan.study(name)
    for experiment in study.experiments:
        content = experiment_plan(plan, name, experiment)
        write_text(experiment_file(content), json.dumps(content), sync=False)
        metrics = partial_folder(plan.scale) / "metrics" / name / f"{experiment}.parquet"
        collect(experiment_file(content), metrics, result_of=result_so_far)
    page = _moved(page_spec(plan, [name]), plan.scale)
    for drawing, entries in (
        (draw, page["studies"][0]["figures"]),
        (tabulate, page["studies"][0]["tables"]),
    ):
        for entry in entries:
            drawing(spec_of(plan, name, entry["name"]), entry["metrics"], entry["files"])
    if study.claims:
        judge(_moved(claims_spec(plan, name), plan.scale), page["studies"][0]["claims"])
    target = partial_folder(plan.scale) / "report" / f"{name}.html"
    write_page(page, target)
    return target


def _moved(spec: Any, scale: str) -> Any:
    """A page spec with every path moved from the scale's folder into its partial one."""
    if isinstance(spec, dict):
        return {key: _moved(value, scale) for key, value in spec.items()}
    if isinstance(spec, list):
        return [_moved(value, scale) for value in spec]
    moved = str(partial_folder(scale))
    return (
        spec.replace(f"results/{scale}", moved, 1)
        if isinstance(spec, str) and spec.startswith(f"results/{scale}/")
        else spec
    )
