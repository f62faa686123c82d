"""What Snakemake's main process does before its first job and after its last."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import IO, Any

import cohort
from cohort.cell.planned import PLAN_FOLDER, RUN_OPTIONS, freeze, options_of
from cohort.core.errors import UserError, explained
from cohort.core.files import check_writable, write_text
from cohort.pipeline.preview import draw_partial, partial_folder
from cohort.pipeline.stages import experiment_file, experiment_plan
from cohort.pipeline.status import failures
from cohort.plan import Plan
from cohort.records.record import is_valid
from cohort.training.job.lease import FINISHED, publish, state_folder

LOCK = Path(PLAN_FOLDER, "driver.lock")
SLURM_COMMANDS = ("sbatch", "scontrol", "scancel")
PING_SECONDS = 15
MEMORY_SHARE = 0.9  # of the machine's, for all jobs together


class Driver:
    """Holds the lock of the working directory as long as its process lives."""

    def __init__(self, plan: Plan | None, workflow: Any):
        self.plan, self.workflow = plan, workflow
        self.local = (
            plan is not None and workflow.resource_settings.nodes is None
        )  # cells run on this machine
        self.lock: IO[str] | None = None

    def set_up(self) -> None:
        """Let the scripts of jobs import this package without installation; say what was left out, and why.

        A graph of 20,000 jobs is millions of objects that stay: looking for garbage among them as often as Python does by default takes a
        good part of a dry run.
        """
        gc.freeze()
        gc.set_threshold(500_000)
        paths = [
            str(Path(cohort.__file__).parents[1]),
            *os.environ.get("PYTHONPATH", "").split(os.pathsep),
        ]
        os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
        check_writable("results")  # Snakemake would say it in its own words, or not at all
        if self.plan is not None:
            self.plan.tell = partial(
                print, file=sys.stderr
            )  # what is found out later, of a study that a target names
            for note in self.plan.notes:
                self.plan.tell(note)
            self._bound_memory()

    def _bound_memory(self) -> None:
        """On this machine only as many cells at once as its memory holds, unless the user says how much they may take. Else the system ends
        one of them, or stands still."""
        if self.local and not any(
            name.startswith("mem") for name in self.workflow.global_resources
        ):
            megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 10**6
            self.workflow.register_resource("mem_mb", int(MEMORY_SHARE * megabytes))

    def check_executor(self) -> None:
        """Raise where the cells are to go to a cluster that is not there: Snakemake would find out job by job."""
        # The workflow learns its executor only after the Snakefile was read, and has none for some commands.
        if getattr(self.workflow.executor_plugin, "name", "") == "slurm":
            check_slurm()

    def start(self) -> None:
        """Lock the directory, freeze the plan for the jobs, forget finished states whose records are in place."""
        if self.plan is None:  # a job on a cluster
            return
        self.check_executor()
        with explained("results"):
            self.lock = lock_directory()
            freeze_plan(self.plan)
            sweep(self.plan)

    def finish(self) -> None:
        """Everything asked for was made: what was drawn from a part of it is out of date."""
        if self.plan is None:
            return
        sweep(self.plan)
        shutil.rmtree(partial_folder(self.plan.scale), ignore_errors=True)

    def rescue(self) -> None:
        """Something failed: say what, put records back that Snakemake deleted because another cell of their job failed, and draw what there
        is, beside the declared outputs and never over them."""
        if self.plan is None or self.lock is None:
            return
        put_back(self.plan)
        sweep(self.plan)
        for failed in failures(self.plan):
            print(failed, file=sys.stderr)
        for name in self.plan.studies:
            print(
                f"drawn from the records that exist: {draw_partial(self.plan, name)}",
                file=sys.stderr,
            )


def check_slurm() -> None:
    """Raise where SLURM's commands are not installed, or its controller does not answer."""
    mend = (
        "start on a login node of the cluster, or without --profile slurm to train on this machine"
    )
    if missing := [command for command in SLURM_COMMANDS if shutil.which(command) is None]:
        raise UserError(f"SLURM's commands are not on this machine ({', '.join(missing)}); {mend}")
    try:
        said = subprocess.run(
            ["scontrol", "ping"], capture_output=True, text=True, timeout=PING_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    if " UP" not in said:
        raise UserError(
            f"SLURM's controller does not answer (scontrol ping says more); start again when it does, or {mend}"
        )


def freeze_plan(plan: Plan) -> None:
    """Write the plan files that jobs read."""
    for things in (plan.cells, plan.shards, plan.data):
        for planned in things.values():
            freeze(planned)
    for study in plan.studies.values():
        for experiment in study.experiments:
            content = experiment_plan(plan, study.name, experiment)
            write_text(experiment_file(content), json.dumps(content), sync=False)
    write_text(RUN_OPTIONS, json.dumps(options_of(plan.config)), sync=False)


def put_back(plan: Plan) -> None:
    """Publish every finished state whose record is not there."""
    for planned in plan.cells.values():
        finished = state_folder(planned.path) / FINISHED
        if finished.exists() and not Path(planned.path).exists() and is_valid(finished, planned):
            publish(finished, planned.path)


def sweep(plan: Plan) -> None:
    """Remove the finished state of every cell whose valid record is in its place, so that deleting a record means training it again."""
    for planned in plan.cells.values():
        folder = state_folder(planned.path)
        if (folder / FINISHED).exists() and is_valid(planned.path, planned):
            (folder / FINISHED).unlink()
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()


def lock_directory() -> IO[str]:
    """Keep every other driver out as long as the returned file is open."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    file = open(LOCK, "a")  # noqa: SIM115 (stays open as long as the process lives)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            "another snakemake is at work in this directory; wait for it, or stop it, and start again"
        ) from None
    return file
