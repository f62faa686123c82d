"""Previews of a study from the records and checkpoints that exist: figures, tables and a page in
results/{scale}/partial, or pandas frames."""

import contextlib
import hashlib
import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core import UserError, files, lazy, sealed_json
from cohort.core.paths import CLAIMS_TABLE, RELEASED, RESULTS, state_folder
from cohort.pipeline import cell_states, stages
from cohort.plan import Plan, require_study
from cohort.plan import load as load_plan
from cohort.records.record import read
from cohort.results import collect, series
from cohort.results.claims.judged import write_judged
from cohort.results.figures import KINDS
from cohort.results.release import folder as release
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

    def draw(study: str) -> None:
        with contextlib.suppress(KeyboardInterrupt):  # which ends this process's parent, too
            stages.exit_on_error(draw_study)(plan, study)

    processes = {study: fork.Process(target=draw, args=(study,)) for study in studies}
    for process in processes.values():
        process.start()
    for process in processes.values():
        process.join()
    if failed := [study for study, process in processes.items() if process.exitcode]:
        raise UserError(f"{', '.join(failed)} could not be drawn")
    write_index(plan.previews.index())
    return [plan.previews.page(study)[0] for study in studies]


def draw_study(plan: Plan, name: str) -> str:
    """Draw a study's page from what exists, but no figure without enough runs; return its path."""
    study, layout = plan.study(name), plan.previews
    metrics = {key: collect_partial(plan, name, key) for key in study.experiments}
    for key, spec in study.drawn_items().items():
        table = metrics[spec["experiment"]]
        runs = series.read_experiment(table)["cells"]
        if key in study.figures and not KINDS[spec["kind"]].from_spec(spec).can_draw(runs):
            for file in layout.figure(name, key):  # the page names it in one line
                Path(file).unlink(missing_ok=True)
        else:
            draw_item(plan, name, key, table)
    if study.claims:
        write_judged(stages.claims_spec(plan, name, layout), layout.table(name, CLAIMS_TABLE))
    page = stages.page_spec(plan, name, layout)
    rows = [row for experiment in study.experiments.values() for row in experiment.rows]
    cells = {row.digest: plan.cells[row.digest] for row in rows}
    page["notes"] = [*page["notes"], *cell_states.failure_texts(cells.values())]
    write_page(page, layout.page(name))
    return layout.page(name)[0]


def draw_item(plan: Plan, study: str, name: str, metrics: str = "") -> list[str]:
    """Draw a figure or table from what exists, or from these metrics; return its files."""
    spec, expanded = stages.spec_of(plan, study, name), plan.study(study)
    outputs = stages.output_files(plan.previews, expanded, name)
    draw = drawing.draw if name in expanded.figures else tabulate
    draw(spec, metrics or collect_partial(plan, study, spec["experiment"]), outputs)
    return outputs


def collect_partial(plan: Plan, study: str, experiment: str, folder: str = "") -> str:
    """Collect the metrics of an experiment from what exists, in a folder if one is given, and
    return their file; reuse a file that the current code collected from the same sources."""
    frozen, content = stages.experiment_plan(plan, study, experiment)
    target = plan.previews.metrics(study, experiment)
    digest = hashlib.sha256(f"{frozen} {files.code_hash('records/**/*', 'results/*')}".encode())
    for record in (Path(cell["path"]) for cell in content["cells"]):
        for source in (record, state_folder(record) / CHECKPOINT):
            if source.exists():
                version = source.stat()
                digest.update(f"{source} {version.st_mtime_ns} {version.st_size}\n".encode())
    if series.read_sources_hash(target) != digest.hexdigest():
        target, frozen = str(Path(folder, target)), str(Path(folder, frozen))
        sealed_json.write_sealed(frozen, content, sync=False)
        collect.collect(frozen, target, result_of=_result_so_far, sources=digest.hexdigest())
    return target


def _result_so_far(record: str) -> collect.CellResult:
    """Read the result of a cell from its record, else from its checkpoint; empty without either."""
    if Path(record).exists():
        with contextlib.suppress(UserError):
            return collect.read_result(record)
    saved = state_folder(record) / CHECKPOINT
    history = checkpoint.load_history(saved) if saved.exists() else None
    values = list(collect.values_by_round(history)) if history else []
    return collect.CellResult("unfinished" if history else "missing", collect.metric_table(values))


def load(study: str, source: str = "results", **config: Any) -> release.RunFrames:
    """Load a study's finished runs, trained here or released, as frames; see `cohort.load`."""
    if source == RESULTS:
        plan = load_plan({"studies": require_study(study), **config})
        paths = (Path(plan.cells[digest].path) for digest in plan.digests(study))
        records = [read(path) for path in paths if path.exists()]
        if not records:
            fix = 'train it first, or load its release with source="released"'
            raise UserError(f"{study} has no finished run at scale {plan.scale}; {fix}")
        return release.RunFrames.of(release.tables_of(records))
    if config:
        raise UserError(f'a release has all scales; {", ".join(config)} is for source="results"')
    root = Path(source)
    if source == "released":
        root = release.release_folders([study]).get(study, Path(RELEASED, study))
    elif not (root / release.MANIFEST).exists():
        root /= study
    return release.RunFrames.of(release.read_tables(root))
