"""Draw a study's figures, tables and page from the records and checkpoints that exist, into
results/{scale}/partial."""

import contextlib
import hashlib
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.core.errors import UserError
from cohort.core.files import code_hash
from cohort.core.lazy import lazy
from cohort.core.paths import CLAIMS_TABLE, state_folder
from cohort.core.sealed_json import write_sealed
from cohort.pipeline import specs
from cohort.pipeline.cell_states import failure_texts
from cohort.pipeline.stages import exit_on_error
from cohort.plan import Plan
from cohort.results import collect, series
from cohort.results.claims.judged import write_judged
from cohort.results.report.page import write_index, write_page
from cohort.results.tables.tabulate import tabulate
from cohort.training.job.lease import CHECKPOINT

if TYPE_CHECKING:
    from cohort.results.figures import draw as drawing
    from cohort.training.job import checkpoint
else:  # matplotlib, and torch, which only unfinished cells need
    drawing = lazy("cohort.results.figures.draw")
    checkpoint = lazy("cohort.training.job.checkpoint")


def draw_studies(plan: Plan, studies: Sequence[str]) -> list[str]:
    """Draw studies as `draw_study` does, each in a process of its own; return their pages."""
    fork = multiprocessing.get_context("fork")  # the plan is shared, not copied
    drawn = exit_on_error(draw_study)
    processes = {study: fork.Process(target=drawn, args=(plan, study)) for study in studies}
    for process in processes.values():
        process.start()
    for process in processes.values():
        process.join()
    if failed := [study for study, process in processes.items() if process.exitcode]:
        raise UserError(f"{', '.join(failed)} could not be drawn")
    write_index(plan.previews.index())
    return [plan.previews.page(study)[0] for study in studies]


def draw_requested(plan: Plan, requested: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Draw these pairs of a study and an item (empty for all) from what exists; yield each path."""
    for study, name in requested:
        if not name:
            yield draw_study(plan, study)
        elif name == CLAIMS_TABLE or name in plan.study(study).drawn_items():
            yield draw_item(plan, study, name)[0]  # unless all its cells are skipped
    write_index(plan.previews.index())


def draw_study(plan: Plan, name: str) -> str:
    """Draw a study from what exists, unfinished cells included, but no figure without any run;
    return the path of its page."""
    study, layout = plan.study(name), plan.previews
    metrics = {key: collect_partial(plan, name, key) for key in study.experiments}
    for key, spec in study.drawn_items().items():
        table = metrics[spec["experiment"]]
        runs = series.read_experiment(Path(table).with_suffix(".json"))["cells"]
        if key in study.figures and all(run["status"] == "missing" for run in runs):
            for file in layout.figure(name, key):  # the page names it in one line
                Path(file).unlink(missing_ok=True)
        else:
            draw_item(plan, name, key, table)
    if study.claims:
        write_judged(specs.claims_spec(plan, name, layout), layout.claims(name))
    page = specs.page_spec(plan, name, layout)
    rows = [row for experiment in study.experiments.values() for row in experiment.rows]
    cells = {row.digest: plan.cells[row.digest] for row in rows}
    page["notes"] = [*page["notes"], *failure_texts(cells.values())]
    write_page(page, layout.page(name))
    return layout.page(name)[0]


def draw_item(plan: Plan, study: str, name: str, metrics: str = "") -> list[str]:
    """Draw one figure or table of a study, or its table of claims, from what exists, or from these
    metrics; return its files."""
    layout, expanded = plan.previews, plan.study(study)
    if name == CLAIMS_TABLE:
        for experiment in expanded.claimed():
            collect_partial(plan, study, experiment)
        write_judged(specs.claims_spec(plan, study, layout), layout.claims(study))
        return layout.claims(study)
    spec = specs.spec_of(plan, study, name)
    outputs = (layout.figure if name in expanded.figures else layout.table)(study, name)
    draw = drawing.draw if name in expanded.figures else tabulate
    draw(spec, metrics or collect_partial(plan, study, spec["experiment"]), outputs)
    return outputs


def collect_partial(plan: Plan, study: str, experiment: str, folder: str = "") -> str:
    """Collect the metrics of an experiment from what exists, in a folder if one is given, and
    return their file; keep a file that the current code collected from just that."""
    frozen, content = specs.experiment_plan(plan, study, experiment)
    target = plan.previews.metrics(study, experiment)
    digest = hashlib.sha256(f"{frozen} {code_hash('records/**/*', 'results/*')}".encode())
    for record in (Path(cell["path"]) for cell in content["cells"]):
        for source in (record, state_folder(record) / CHECKPOINT):
            if source.exists():
                version = source.stat()
                digest.update(f"{source} {version.st_mtime_ns} {version.st_size}\n".encode())
    if series.read_sources_hash(target) != digest.hexdigest():
        target, frozen = str(Path(folder, target)), str(Path(folder, frozen))
        write_sealed(frozen, content, sync=False)
        collect.collect(frozen, target, result_of=_result_so_far, sources=digest.hexdigest())
    return target


def _result_so_far(record: str) -> collect.Result:
    """Read the result of a cell from its record, else from its checkpoint; empty without either."""
    if Path(record).exists():
        with contextlib.suppress(UserError):
            return collect.read_result(record)
    saved = state_folder(record) / CHECKPOINT
    history = checkpoint.load_history(saved) if saved.exists() else None
    if history is None:
        return collect.Result("missing", collect.EMPTY.iloc[:0])
    return collect.Result("unfinished", collect.rows_by_round(history))
