"""Draw a study's figures, tables and page from the records and checkpoints that exist, into
results/{scale}/partial."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cohort.core.errors import UserError
from cohort.core.paths import CLAIMS_TABLE, Layout
from cohort.pipeline.cell_states import failure_texts
from cohort.pipeline.partial_metrics import collect_partial
from cohort.pipeline.specs import claims_spec, page_spec, spec_of
from cohort.pipeline.stages import exit_on_error
from cohort.plan import Plan
from cohort.results.claims.judged import write_judged
from cohort.results.figures.draw import draw
from cohort.results.files import read_experiment
from cohort.results.report.page import write_page
from cohort.results.report.render import write_index
from cohort.results.tables.tabulate import tabulate


def draw_studies(plan: Plan, studies: Sequence[str]) -> list[Path]:
    """Draw studies as `draw_partial` does, each in a process of its own; return their pages."""
    fork = multiprocessing.get_context("fork")  # the plan is shared, not copied
    drawing = exit_on_error(draw_partial)
    processes = {study: fork.Process(target=drawing, args=(plan, study)) for study in studies}
    for process in processes.values():
        process.start()
    for process in processes.values():
        process.join()
    if failed := [study for study, process in processes.items() if process.exitcode]:
        raise UserError(f"{', '.join(failed)} could not be drawn")
    layout = Layout(plan.scale, partial=True)
    write_index(layout.index())
    return [Path(layout.page(study)[0]) for study in studies]


def draw_partial(plan: Plan, name: str) -> Path:
    """Draw a study from what exists, unfinished cells included, but no figure without any run;
    return the path of its page."""
    study, layout = plan.study(name), Layout(plan.scale, partial=True)
    metrics = {key: collect_partial(plan, name, key) for key in study.experiments}
    for key, spec in study.drawn_items().items():
        runs = read_experiment(Path(metrics[spec["experiment"]]).with_suffix(".json"))["cells"]
        if key in study.figures and all(run["status"] == "missing" for run in runs):
            for file in layout.figure(name, key):  # the page names it in one line
                Path(file).unlink(missing_ok=True)
        else:
            _draw_from(metrics[spec["experiment"]], plan, name, key)
    if study.claims:
        write_judged(claims_spec(plan, name, layout), layout.claims(name))
    page = page_spec(plan, name, layout)
    rows = [row for experiment in study.experiments.values() for row in experiment.rows]
    cells = {row.digest: plan.cells[row.digest] for row in rows}
    page["notes"] = [*page["notes"], *failure_texts(cells.values())]
    write_page(page, layout.page(name))
    write_index(layout.index())
    return Path(layout.page(name)[0])


def draw_requested(plan: Plan, requested: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Draw these pairs of a study and an item (empty for all) from what exists; yield each path."""
    for study, name in requested:
        if not name:
            yield str(draw_partial(plan, study))
        elif name == CLAIMS_TABLE:
            layout = Layout(plan.scale, partial=True)
            for experiment in plan.study(study).claimed():
                collect_partial(plan, study, experiment)
            write_judged(claims_spec(plan, study, layout), layout.claims(study))
            yield layout.claims(study)[0]
        elif name in plan.study(study).drawn_items():  # not if all its cells are skipped
            yield draw_item(plan, study, name)[0]


def draw_item(plan: Plan, study: str, name: str) -> list[str]:
    """Draw one figure or table of a study from what exists; return its files."""
    spec = plan.study(study).drawn_items()[name]
    return _draw_from(collect_partial(plan, study, spec["experiment"]), plan, study, name)


def _draw_from(metrics: str, plan: Plan, study: str, name: str) -> list[str]:
    layout, spec = Layout(plan.scale, partial=True), spec_of(plan, study, name)
    if name in plan.study(study).figures:
        files = layout.figure(study, name)
        draw(spec, metrics, files)
    else:
        files = layout.table(study, name)
        tabulate(spec, metrics, files)
    return files
