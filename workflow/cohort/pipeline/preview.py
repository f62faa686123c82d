"""Draw a study's figures, tables and page from the records and checkpoints that exist.

Previews have a folder of their own, results/{scale}/partial, see `Layout`.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.synchronize import Semaphore
from pathlib import Path

from cohort.core.errors import UserError
from cohort.core.paths import CLAIMS_TABLE, Layout
from cohort.pipeline.cell_states import failure_texts
from cohort.pipeline.pages import page_spec
from cohort.pipeline.partial_metrics import collect_partial
from cohort.pipeline.specs import claims_spec, spec_of
from cohort.plan import Plan
from cohort.results.claims.judge import write_judged
from cohort.results.figures.draw import draw
from cohort.results.files import read_experiment
from cohort.results.report.index import write_index
from cohort.results.report.page import write_page
from cohort.results.tables.tabulate import tabulate


def draw_studies(plan: Plan, studies: Sequence[str]) -> list[Path]:
    """Draw studies as `draw_partial` does, several of them in processes of their own, as many at a
    time as there are cores; return the paths of their pages."""
    if len(studies) == 1:
        return [draw_partial(plan, studies[0])]
    fork = multiprocessing.get_context("fork")  # the plan is shared, not copied
    turns = fork.Semaphore(os.cpu_count() or 1)
    processes = {
        study: fork.Process(target=_draw_in_turn, args=(turns, plan, study)) for study in studies
    }
    for process in processes.values():
        process.start()
    for process in processes.values():
        process.join()
    failed = [study for study, process in processes.items() if process.exitcode]
    if failed:
        raise UserError(f"{', '.join(failed)} could not be drawn")
    layout = Layout(plan.scale, partial=True)
    write_index(layout.index())
    return [Path(layout.page(study)[0]) for study in studies]


def _draw_in_turn(turns: Semaphore, plan: Plan, study: str) -> None:
    """Draw a study in a process that ends with its error message, if there is one."""
    with turns:
        try:
            draw_partial(plan, study)
        except UserError as error:
            sys.exit(f"error: {error}")
        except KeyboardInterrupt:
            sys.exit(1)


def draw_partial(plan: Plan, name: str) -> Path:
    """Draw a study from what exists, unfinished cells included, but no figure without any run;
    return the path of its page."""
    study, layout = plan.study(name), Layout(plan.scale, partial=True)
    for experiment in study.experiments:
        collect_partial(plan, name, experiment)
    page = page_spec(plan, name, layout)
    rows = [row for experiment in study.experiments.values() for row in experiment.rows]
    cells = {row.digest: plan.cells[row.digest] for row in rows}
    page["notes"] = [*page["notes"], *failure_texts(cells.values())]
    for entry in page["figures"]:
        if _has_runs(entry["metrics"]):
            draw(spec_of(plan, name, entry["name"]), entry["metrics"], entry["files"])
        else:  # the page names it in one line
            for file in map(Path, entry["files"]):
                file.unlink(missing_ok=True)
    for entry in page["tables"]:
        tabulate(spec_of(plan, name, entry["name"]), entry["metrics"], entry["files"])
    if study.claims:
        write_judged(claims_spec(plan, name, layout), page["claims"])
    write_page(page, layout.page(name))
    write_index(layout.index())
    return Path(layout.page(name)[0])


def _has_runs(metrics: str) -> bool:
    cells = read_experiment(Path(metrics).with_suffix(".json"))["cells"]
    return any(cell["status"] != "missing" for cell in cells)


def draw_requested(plan: Plan, requested: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Draw these pairs of a study and an item (empty for all) from what exists; yield each path."""
    for study, name in requested:
        if not name:
            yield str(draw_partial(plan, study))
        elif name == CLAIMS_TABLE:
            yield draw_claims(plan, study)[0]
        elif name in plan.study(study).drawn_items():  # not if all its cells are skipped
            yield draw_item(plan, study, name)[0]


def draw_item(plan: Plan, study: str, name: str) -> list[str]:
    """Draw one figure or table of a study from what exists; return its files."""
    layout, spec = Layout(plan.scale, partial=True), spec_of(plan, study, name)
    metrics = collect_partial(plan, study, spec["experiment"])
    if name in plan.study(study).figures:
        files = layout.figure(study, name)
        draw(spec, metrics, files)
    else:
        files = layout.table(study, name)
        tabulate(spec, metrics, files)
    return files


def draw_claims(plan: Plan, study: str) -> list[str]:
    """Judge a study's claims by what exists; return the files of their table."""
    layout = Layout(plan.scale, partial=True)
    for experiment in plan.study(study).claimed():
        collect_partial(plan, study, experiment)
    write_judged(claims_spec(plan, study, layout), layout.claims(study))
    return layout.claims(study)
