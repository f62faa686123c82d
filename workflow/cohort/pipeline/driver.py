"""The work of Snakemake's main process before its first job and after its last."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import cohort
from cohort.core.errors import UserError, explain_errors
from cohort.core.files import check_writable, try_lock
from cohort.core.lazy import lazy
from cohort.core.paths import DRIVER_LOCK, RESULTS, RUN_OPTIONS, Layout, state_folder
from cohort.core.sealed_json import write_sealed
from cohort.pipeline.cell_states import failure_texts
from cohort.pipeline.slurm import Watch, check_slurm
from cohort.pipeline.specs import experiment_plan, frozen_experiment_path
from cohort.pipeline.stages import Stages, exit_on_error
from cohort.pipeline.stopping import Stopping
from cohort.pipeline.targets import requested_items
from cohort.plan import Plan, misnamed_studies
from cohort.records.record import is_valid
from cohort.results.report.render import write_index
from cohort.settings import options_of, write_plan
from cohort.training.cell import Cell
from cohort.training.job.lease import FINISHED, publish

if TYPE_CHECKING:
    from cohort.pipeline import preview
else:  # it imports pandas and matplotlib, which only a failed workflow needs
    preview = lazy("cohort.pipeline.preview")

MEMORY_SHARE = 0.9  # of this machine's memory, for all jobs together
TRIGGERS = {"mtime", "params"}  # of reruns, as in profiles/default
DEFAULT_LIMIT = (100, 1)  # Snakemake's max-jobs-per-timespan: jobs and seconds


class Driver:
    """Snakemake's main process or, without a plan, a cluster's job, which does next to nothing."""

    def __init__(self, plan: Plan | None, workflow: Any):
        self.plan, self.workflow = plan, workflow
        self.local = plan is not None and workflow.resource_settings.nodes is None
        self.stages = Stages(plan, self.local)
        self.stopping = Stopping(workflow, self.local)
        self.lock: IO[str] | None = None
        self.already_recorded: list[Cell] = []
        self.in_module = not workflow.modifier.is_main_snakefile()
        self.renamed = workflow.modifier.modify_rulename  # in a workflow that uses this module

    def set_up(self) -> None:
        """Prepare this process: PYTHONPATH for jobs, memory for local jobs; print the plan's notes.

        The garbage collector ignores what exists by now and runs less often: a graph of 20,000 jobs
        has millions of long-lived objects, and scanning them takes a good part of a dry run.
        """
        gc.freeze()
        gc.set_threshold(500_000)
        paths = [
            str(Path(cohort.__file__).parents[1]),
            *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        ]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
        if self.in_module:
            _check_prefix(self.workflow)
            _attach_handlers(
                self.workflow,
                {
                    "onstart": self.on_start,
                    "onsuccess": self.on_success,
                    "onerror": self.on_error,
                },
            )
        check_writable(RESULTS)  # Snakemake's own message would say less
        check_folder(Path.cwd())
        if self.plan is not None:
            self.plan.on_note = partial(print, file=sys.stderr)
            for note in [*misnamed_studies().values(), *self.plan.notes]:
                self.plan.on_note(note)
            self._limit_memory()
            cells = self.plan.cells.values()
            self.already_recorded = [cell for cell in cells if os.path.exists(cell.path)]

    def _limit_memory(self) -> None:
        """Run only as many local jobs at once as fit into memory, unless the user sets a limit."""
        limited = any(name.startswith("mem") for name in self.workflow.global_resources)
        if self.local and not limited:
            megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6
            self.workflow.register_resource("mem_mb", int(MEMORY_SHARE * megabytes))

    def check_executor(self) -> None:
        """Raise a UserError if jobs are to run on a SLURM cluster that is not available.

        Snakemake sets its executor after reading the Snakefile, and for some commands not at all.
        """
        if self._on_slurm():
            check_slurm()

    def _on_slurm(self) -> bool:
        return getattr(self.workflow.executor_plugin, "name", "") == "slurm"

    @exit_on_error
    def on_start(self) -> None:
        """When Snakemake starts the workflow, lock the working directory, freeze the plan for the
        jobs, delete leftovers and install the signal handlers."""
        if self.plan is None or self.lock is not None:  # another workflow may call it once more
            return
        if self.in_module:
            _check_triggers(self.workflow)
        self.check_executor()
        with explain_errors(RESULTS):
            self.lock = lock_directory()
            freeze_plan(self.plan)
            # An orphan may have published others since, which Snakemake deletes before their jobs.
            remove_published_originals(self.already_recorded)
        self.drop_default_limit()
        if self._on_slurm():
            Watch(self.workflow)
        self.stopping.install()

    def drop_default_limit(self) -> None:
        """Start jobs without a limit per second, unless the user sets one.

        Snakemake's default starts a timer for every job that ends, and each wakes the scheduler
        every second from then on, which takes more and more of a core.
        """
        limit = self.workflow.scheduling_settings.max_jobs_per_timespan
        if limit and (limit.max_jobs, limit.timespan) == DEFAULT_LIMIT:
            self.workflow.scheduler.job_rate_limiter = None

    def on_success(self) -> None:
        """Clean up state folders, delete previews, now out of date, and print the pages' paths."""
        if self.plan is None:
            return
        self.stopping.uninstall()
        with _errors_printed():
            remove_published_originals(self.plan.cells.values())
        remove_previews(self.plan.scale, self._requested())
        if self.stages.reported:
            write_index(self.plan.layout.index())
        for study in self.stages.reported:
            print(f"{study}: {self.plan.layout.page(study)[0]}", file=sys.stderr)

    def on_error(self) -> None:
        """Restore records that Snakemake deleted, print failed cells, and draw what was asked for
        from what exists. A driver that a signal stopped draws nothing."""
        if self.plan is None or self.lock is None:
            return
        self.stopping.uninstall()
        with _errors_printed():
            restore_records(self.plan)
            remove_published_originals(self.plan.cells.values())
        with _errors_printed():
            for failed in failure_texts(self.plan.cells.values()):
                print(failed, file=sys.stderr)
        if self.stopping.received:
            self.stopping.finish()
            return
        with _errors_printed():
            for file in preview.draw_requested(self.plan, self._requested()):
                print(f"drawn from the records that exist: {file}", file=sys.stderr)
            write_index(self.plan.layout.index())

    def _requested(self) -> list[tuple[str, str]]:
        """Pairs of a study and a figure or table (empty for all) that Snakemake was asked for."""
        assert self.plan is not None, "only the driver plans"
        return requested_items(self.plan, self.workflow.dag_settings.targets, self.renamed)


@contextlib.contextmanager
def _errors_printed() -> Iterator[None]:
    """Print a UserError of this block as one line: Snakemake would print its handlers' stack."""
    try:
        with explain_errors(RESULTS):
            yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)


def check_folder(folder: Path) -> None:
    """Raise a UserError if Snakemake would take a part of the folder's path for a wildcard."""
    if {"{", "}"} & {*str(folder)}:
        raise UserError(
            f"{folder}: Snakemake cannot work below a folder with {{ or }} in its name; rename it"
        )


def freeze_plan(plan: Plan) -> None:
    """Write the plan files that jobs read: of cells, shards, data, experiments and options."""
    cells = (cell.planned() for cell in plan.cells.values())
    for planned in chain(cells, plan.shards.values(), plan.data.values()):
        write_plan(planned)
    for study in plan.studies.values():
        for experiment in study.experiments:
            content = experiment_plan(plan, study.name, experiment)
            write_sealed(frozen_experiment_path(content), content, sync=False)
    write_sealed(RUN_OPTIONS, options_of(plan.config), sync=False)


def restore_records(plan: Plan) -> None:
    """Publish finished records again that Snakemake deleted with a failed job of several cells."""
    for cell in plan.cells.values():
        finished, record = state_folder(cell.path) / FINISHED, Path(cell.path)
        if finished.exists() and not record.exists() and is_valid(finished, cell.digest):
            publish(finished, cell.path)


def remove_published_originals(cells: Iterable[Cell]) -> None:
    """Delete the finished record (`finished.h5`) from the state folder of each cell whose valid
    record is in place, and the folder if it is then empty. Otherwise a cell whose record is deleted
    would be published again instead of trained."""
    for cell in cells:
        folder = state_folder(cell.path)
        if (folder / FINISHED).exists() and is_valid(cell.path, cell.digest):
            (folder / FINISHED).unlink()
        if folder.exists() and not any(folder.iterdir()):
            with contextlib.suppress(OSError):  # a job has just begun there, or deleted it
                folder.rmdir()


def lock_directory() -> IO[str]:
    """Keep other drivers out of this working directory while the returned file is open. Raise
    UserError if one is at work."""
    DRIVER_LOCK.parent.mkdir(parents=True, exist_ok=True)
    file = try_lock(DRIVER_LOCK)
    if file is None:
        raise UserError(
            "another snakemake, or cohort restore, is at work in this directory; "
            "wait for it, or stop it, and start again"
        )
    return file


def remove_previews(scale: str, finished: Iterable[tuple[str, str]]) -> None:
    """Delete the previews of these pairs of a study and a figure or table (empty for the whole
    study), which are out of date, and their cards in the index."""
    layout = Layout(scale, partial=True)
    for study, name in finished:
        if name:
            files = [*layout.figure(study, name), *layout.table(study, name)]
        else:
            files = layout.page(study)
            for kind in ("metrics", "figures", "tables"):
                shutil.rmtree(Path(layout.folder, kind, study), ignore_errors=True)
        for file in files:
            Path(file).unlink(missing_ok=True)
    if any(Path(layout.pages).glob("*.json")):
        write_index(layout.index())
    else:
        shutil.rmtree(layout.pages, ignore_errors=True)
    if not any(path.is_file() for path in Path(layout.folder).rglob("*")):
        shutil.rmtree(layout.folder, ignore_errors=True)


def _check_prefix(workflow: Any) -> None:
    """Raise a UserError if the workflow that uses Cohort as a module changes its files' paths."""
    modifier = workflow.modifier.path_modifier
    if modifier.prefix or modifier._prefix_replacements:
        raise UserError(
            "Cohort as a module takes no prefix or replace_prefix, because its jobs find files by "
            "their paths: run the workflow in a folder of its own (snakemake --directory)"
        )


def _check_triggers(workflow: Any) -> None:
    """Raise a UserError if Snakemake would train finished cells again, for edited code or because
    shards were deleted."""
    others = sorted({str(trigger) for trigger in workflow.rerun_triggers} - TRIGGERS)
    if others:
        raise UserError(
            f"the rerun triggers {', '.join(others)} would train finished cells again: copy "
            "Cohort's profiles/default, or add --rerun-triggers mtime params"
        )


def _attach_handlers(workflow: Any, handlers: Mapping[str, Callable[[], None]]) -> None:
    """Call handlers at the events of the using workflow, such as `onstart`, before its own
    handlers.

    Its own may be registered before or after the module is read. A module that is read a second
    time, to change a rule of it, is attached already.
    """
    if not hasattr(workflow, "cohort_is_attached"):
        workflow.cohort_is_attached = True
        for event, handler in handlers.items():
            _attach(workflow, event, exit_on_error(handler))


def _attach(workflow: Any, event: str, handler: Callable[[], None]) -> None:
    def with_handler(own: Callable[[str], None]) -> Callable[[str], None]:
        def both(log: str) -> None:
            handler()
            own(log)

        return both

    def register(own: Callable[[str], None]) -> None:
        """Register a handler as `onstart:` in a Snakefile does, with the module's handler kept."""
        getattr(type(workflow), event)(workflow, own)
        if workflow.modifier.is_main_snakefile():
            setattr(workflow, f"_{event}", with_handler(own))

    setattr(workflow, f"_{event}", with_handler(getattr(workflow, f"_{event}")))
    setattr(workflow, event, register)
