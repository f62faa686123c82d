"""The work of Snakemake's main process before its first job and after its last."""

import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import cohort
from cohort.core import UserError, explain_errors, lazy, paths, sealed_json
from cohort.core.files import check_writable, try_lock
from cohort.core.process import stop_signals
from cohort.pipeline import cell_states, slurm, stages
from cohort.plan import Plan
from cohort.records.record import is_valid
from cohort.results.report.page import write_index
from cohort.settings import options_of, write_plan
from cohort.training.cell import Cell
from cohort.training.job.lease import FINISHED, publish
from cohort.training.job.machine import check_device

if TYPE_CHECKING:
    import psutil

    from cohort.pipeline import preview
else:  # which only a workflow needs that is stopped, or has failed
    psutil, preview = lazy("psutil"), lazy("cohort.pipeline.preview")

MEMORY_SHARE = 0.9  # of this machine's memory, for all jobs together
TRIGGERS = {"mtime", "params"}  # of reruns, as in profiles/default
DEFAULT_LIMIT = (100, 1)  # Snakemake's max-jobs-per-timespan: jobs and seconds
SCRIPTS = Path(".snakemake/scripts")  # where Snakemake puts the scripts of running jobs
CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
WAKE_SECONDS = 0.2


class Driver:
    """Snakemake's main process or, without a plan, a cluster's job, which does next to nothing."""

    def __init__(self, plan: Plan | None, workflow: Any):
        self.plan, self.workflow = plan, workflow
        self.stages = stages.Stages(plan, workflow, self.limit_memory)
        self.stopping = Stopping(workflow)
        self.lock: IO[str] | None = None
        self.in_module = not workflow.modifier.is_main_snakefile()

    def set_up(self) -> None:
        """Set PYTHONPATH for jobs and the memory of local ones; print the plan's notes."""
        # The graph of 20,000 jobs has millions of objects, which the collector would scan in vain.
        gc.freeze()
        gc.set_threshold(500_000)
        package = str(Path(cohort.__file__).parents[1])
        folders = filter(None, [package, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        os.environ["MPLBACKEND"] = "agg"  # a notebook's is a module that may not be installed here
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(folders))
        if self.in_module:
            events = {"onstart": self.on_start, "onsuccess": self.on_success}
            _attach_handlers(self.workflow, events | {"onerror": self.on_error})
        check_writable(paths.RESULTS)  # Snakemake's own message would say less
        folder = str(Path.cwd())
        if "{" in folder or "}" in folder:  # it would take them for a wildcard
            what = "Snakemake cannot work below a folder with { or } in its name; rename it"
            raise UserError(f"{folder}: {what}")
        if self.plan is not None:
            self.plan.on_note = partial(print, file=sys.stderr)
            for note in self.plan.notes:
                self.plan.on_note(note)
            self.limit_memory()

    def limit_memory(self) -> None:
        """Start only as many local jobs at once as fit into memory, unless a limit is set; call it
        again when Snakemake has set its executor, which is after reading the Snakefile."""
        limited = any(name.startswith("mem") for name in self.workflow.global_resources)
        if stages.trains_locally(self.workflow) and not limited and not self.in_module:
            self.workflow.register_resource("mem_mb", int(MEMORY_SHARE * memory() // 10**6))

    def check_executor(self) -> None:
        """Raise a UserError if jobs are to run without this driver's handlers, or on a cluster that
        is not available. Snakemake sets its executor after reading the Snakefile, if at all."""
        if getattr(self.workflow.execution_settings, "no_hooks", False):  # none for --report
            raise UserError("--no-hooks would start jobs without their plan and lock; leave it out")
        if self._on_slurm():
            slurm.check_slurm()

    def _on_slurm(self) -> bool:
        return getattr(self.workflow.executor_plugin, "name", "") == "slurm"

    @stages.exit_on_error
    def on_start(self) -> None:
        """When Snakemake starts the workflow, lock the working directory, freeze the plan for the
        jobs, delete leftovers and install the signal handlers."""
        if self.plan is None or self.lock is not None:  # another workflow may call it once more
            return
        dag = self.workflow.dag
        lacking = [job for job in dag.needrun_jobs() if stages.trains(job.rule)]
        if lacking:
            # by which Snakemake would train finished cells again, for edited code or lost shards
            others = sorted({str(trigger) for trigger in self.workflow.rerun_triggers} - TRIGGERS)
            if others:
                what = f"the rerun triggers {', '.join(others)} would train finished cells again"
                hint = "copy Cohort's profiles/default, or add --rerun-triggers mtime params"
                raise UserError(f"{what}: {hint}")
            if stages.trains_locally(self.workflow) and self.plan.config["device"] == "cuda":
                check_device("cuda")
        self.check_executor()
        with explain_errors(paths.RESULTS):
            self.lock = lock_directory()
            freeze_plan(self.plan)
            # An orphan may have published some since, which Snakemake deletes before their jobs.
            missing = {str(file) for job in lacking for file in dag.reason(job).missing_output}
            cells = self.plan.cells.values()
            remove_published_originals(cell for cell in cells if cell.path not in missing)
            keep_new_records(cell for cell in cells if cell.path in missing)
        # Snakemake's default limit of jobs per second starts a timer for every job that ends, and
        # each wakes the scheduler every second from then on, which takes more and more of a core.
        limit = self.workflow.scheduling_settings.max_jobs_per_timespan
        if limit and (limit.max_jobs, limit.timespan) == DEFAULT_LIMIT:
            self.workflow.scheduler.job_rate_limiter = None
        if self._on_slurm():
            slurm.ExecutorPatch(self.workflow)
        self.stopping.install()

    def on_success(self) -> None:
        """Clean up, and print each page's path, the states of its runs and what changed since."""
        if self.plan is None:
            return
        self.stopping.uninstall()
        with _errors_printed():
            remove_published_originals(self.plan.cells.values())
        options = self.workflow.dag_settings
        partial_run = options.until or options.omit_from or options.batch or self.workflow.touch
        reported = () if partial_run else self.stages.reported
        for study in reported:
            _delete_preview(self.plan.previews, study)
            page, card_file = self.plan.layout.page(study)
            card = json.loads(Path(card_file).read_text(encoding="utf-8"))
            lines = *card["changed"], f"{study}: {page} ({card['phrase']})"
            print(*lines, sep="\n", file=sys.stderr)
        if reported:
            _write_indexes(self.plan)
        elif self.plan.config.get("only") and self.stages.requested:
            command = " ".join(["cohort draw", *self.stages.requested])
            print(f"only trains; {command} draws what exists", file=sys.stderr)

    def on_error(self) -> None:
        """Restore records that Snakemake deleted, print failed cells, and draw the studies that
        were asked for from what exists. A driver that a signal stopped draws nothing."""
        if self.plan is None or self.lock is None:
            return
        self.stopping.uninstall()
        with _errors_printed():
            restore_records(self.plan)
            remove_published_originals(self.plan.cells.values())
        with _errors_printed():
            for failed in cell_states.failure_texts(self.plan.cells.values()):
                print(failed, file=sys.stderr)
        if self.stopping.received:
            self.stopping.finish()
            return
        for study in self.stages.requested:
            with _errors_printed():
                page = preview.draw_study(self.plan, study)
                print(f"drawn from the records that exist: {page}", file=sys.stderr)
        with _errors_printed():
            _write_indexes(self.plan)


@contextlib.contextmanager
def _errors_printed() -> Iterator[None]:
    """Print a UserError of this block as one line: Snakemake would print its handlers' stack."""
    try:
        with explain_errors(paths.RESULTS):
            yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)


def freeze_plan(plan: Plan) -> None:
    """Write the plan files that jobs read: of cells, shards, data, experiments and options."""
    cells = (cell.planned() for cell in plan.cells.values())
    for planned in chain(cells, plan.shards.values(), plan.data.values()):
        write_plan(planned)
    for study in plan.studies.values():
        for experiment in study.experiments:
            file, content = stages.experiment_plan(plan, study.name, experiment)
            sealed_json.write_sealed(file, content, sync=False)
    sealed_json.write_sealed(paths.RUN_OPTIONS, options_of(plan.config), sync=False)


def restore_records(plan: Plan) -> None:
    """Publish finished records again that Snakemake deleted with a failed job of several cells."""
    for cell in plan.cells.values():
        finished, record = paths.state_folder(cell.path) / FINISHED, Path(cell.path)
        if finished.exists() and not record.exists() and is_valid(finished, cell.digest):
            publish(finished, cell.path)


def remove_published_originals(cells: Iterable[Cell]) -> None:
    """Delete the finished record (`finished.h5`) of each cell whose valid record is in place, and
    its empty state folder: else a cell whose record is deleted would be published again."""
    for cell in cells:
        folder = paths.state_folder(cell.path)
        if (folder / FINISHED).exists() and is_valid(cell.path, cell.digest):
            (folder / FINISHED).unlink(missing_ok=True)  # `cohort run` may just have deleted it
        with contextlib.suppress(OSError):  # it is not empty, or there is none
            folder.rmdir()


def keep_new_records(cells: Iterable[Cell]) -> None:
    """Put valid records of cells that had none when the driver planned into their state folders:
    Snakemake deletes them before their jobs, which then publish them instead of training."""
    for cell in cells:
        if os.path.exists(cell.path) and is_valid(cell.path, cell.digest):
            publish(Path(cell.path), paths.state_folder(cell.path) / FINISHED)


def memory() -> int:
    """The bytes of memory that processes may use here: those of the machine, or fewer in a cgroup,
    such as that of a SLURM job or a container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    name = OWN_CGROUP.read_text().rpartition("::")[2].strip() if OWN_CGROUP.exists() else ""
    group = CGROUPS / name.lstrip("/")
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):  # there is none, or it is `max`
            limits.append(int((folder / "memory.max").read_text()))
    return min(limits)


def _write_indexes(plan: Plan) -> None:
    write_index(plan.layout.index())
    if Path(previews := plan.previews.index()).exists():
        write_index(previews)


def _delete_preview(previews: paths.Layout, study: str) -> None:
    """Delete what was drawn of a study before it was finished."""
    for part in ("metrics", "figures", "tables"):
        shutil.rmtree(Path(previews.folder, part, study), ignore_errors=True)
    for file in previews.page(study):
        Path(file).unlink(missing_ok=True)


def lock_directory() -> IO[str]:
    """Lock the working directory while the returned file is open; UserError if a driver has it."""
    paths.DRIVER_LOCK.parent.mkdir(parents=True, exist_ok=True)
    file = try_lock(paths.DRIVER_LOCK)
    if file is None:
        other = "another snakemake, cohort restore or cohort prune is running in this directory"
        raise UserError(f"{other}; wait for it, or stop it, and start again")
    return file


def _attach_handlers(workflow: Any, handlers: Mapping[str, Callable[[], None]]) -> None:
    """Call handlers at the events of the using workflow, such as `onstart`. Raise a UserError if it
    changes the paths of Cohort's files. A module that is read a second time, to change a rule of
    it, is attached already."""
    modifier = workflow.modifier.path_modifier
    if modifier.prefix or modifier._prefix_replacements:
        why = "because its jobs find files by their paths"
        hint = "run the workflow in a folder of its own (snakemake --directory)"
        raise UserError(f"Cohort as a module takes no prefix or replace_prefix, {why}: {hint}")
    if not hasattr(workflow, "cohort_is_attached"):
        workflow.cohort_is_attached = True
        for event, handler in handlers.items():
            _attach(workflow, event, stages.exit_on_error(handler))


def _attach(workflow: Any, event: str, handler: Callable[[], None]) -> None:
    """Call a handler at an event, before the using workflow's own, registered by now or later."""

    def with_handler(own: Callable[[str], None]) -> Callable[[str], None]:
        def both(log: str) -> None:
            handler()
            own(log)

        return both

    def register(own: Callable[[str], None]) -> None:
        """Register a handler as `onstart:` in a Snakefile does, and keep Cohort's before it."""
        getattr(type(workflow), event)(workflow, own)
        if workflow.modifier.is_main_snakefile():
            setattr(workflow, f"_{event}", with_handler(own))

    setattr(workflow, f"_{event}", with_handler(getattr(workflow, f"_{event}")))
    setattr(workflow, event, register)


class Stopping:
    """Stops the driver at the first stop signal: no more jobs start, cells on this machine
    save a checkpoint, and it ends. Jobs on a cluster go on after SIGTERM, which a driver gets at
    its own time limit, and SIGHUP, and are canceled after Ctrl-C."""

    def __init__(self, workflow: Any):
        self.workflow = workflow
        self.received: signal.Signals | None = None

    def install(self) -> None:
        """Handle stop signals in place of Snakemake, which may wait for its own thread's lock."""
        for number in stop_signals():
            signal.signal(number, self._handle)

    def uninstall(self) -> None:
        """Handle the signals as Python does, unless one has been received."""
        if self.received is None:
            for number in stop_signals():
                is_ctrl_c = number == signal.SIGINT
                signal.signal(number, signal.default_int_handler if is_ctrl_c else signal.SIG_DFL)

    def _handle(self, number: int, frame: Any) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
            threading.Thread(target=self._stop, daemon=True).start()

    def _stop(self) -> None:
        """Stop the scheduler, which waits for local jobs; then pass the signal on to these."""
        scheduler = self.workflow.scheduler
        scheduler.exit_gracefully()
        if not stages.trains_locally(self.workflow):
            scheduler.executor_error_callback(KeyboardInterrupt())  # do not wait for the cluster
        folder, signaled = SCRIPTS.resolve(), set[int]()
        while True:  # a job may just be starting
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):  # it has just ended
                    is_job = any(Path(word).parent == folder for word in process.cmdline())
                    if is_job and process.pid not in signaled:  # not a shell that waits for one
                        signaled.add(process.pid)
                        process.terminate()
            time.sleep(WAKE_SECONDS)

    def finish(self) -> None:
        """Cancel jobs on the cluster if Ctrl-C stopped the driver; print what becomes of cells."""
        assert self.received is not None
        outcome = "cells that had ended a round on this machine have saved a checkpoint"
        if not stages.trains_locally(self.workflow):
            outcome = "jobs on the cluster go on"
            if self.received is signal.SIGINT:
                executor = self.workflow.scheduler._executor
                executor.cancel_jobs(list(executor.active_jobs))
                outcome = "jobs on the cluster are canceled"
        print(f"stopped by {self.received.name}: {outcome}; start again to resume", file=sys.stderr)
