"""Queries to SLURM of the driver and `cohort status`, besides those of Snakemake's executor."""

import asyncio
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from cohort.core.errors import UserError
from cohort.settings import DIGEST

SLURM_COMMANDS = ("sbatch", "scontrol", "scancel", "squeue", "sinfo")
SECONDS = 15  # that a query may take
TEMPORARY_REFUSAL = re.compile("MaxSubmit|temporarily unable|Unable to contact|Socket timed out")
"""What sbatch says if it would take the job later."""
RESUBMIT_SECONDS = 60.0


def check_slurm() -> None:
    """Raise a UserError if SLURM's commands are not installed or its controller does not answer."""
    fix = "start on a login node of the cluster, or without --profile slurm to train here"
    if missing := [command for command in SLURM_COMMANDS if shutil.which(command) is None]:
        raise UserError(f"SLURM's commands are not on this machine ({', '.join(missing)}); {fix}")
    if " UP" not in _output("scontrol", "ping"):
        silent = "SLURM's controller does not answer (scontrol ping says more)"
        raise UserError(f"{silent}; start again when it does, or {fix}")


class HeldJob(NamedTuple):
    """A job that SLURM starts only once someone releases it, and the cells it trains, if known."""

    number: str
    reason: str
    digests: tuple[str, ...]

    def __str__(self) -> str:
        cells = f" ({', '.join(self.digests)})" if self.digests else ""
        fix = f"scontrol release {self.number} lets it start, scancel {self.number} gives it up"
        return f"held by SLURM: job {self.number}{cells}, {self.reason}\n  {fix}"


def held_jobs() -> list[HeldJob]:
    """List the held jobs that were submitted from this folder; none where SLURM does not answer."""
    here, jobs = Path.cwd(), []
    form = "--format=%i|%r|%k|%Z"  # number, reason, comment and folder
    for line in _output("squeue", "--me", "--states=PENDING", "--noheader", form).splitlines():
        fields = line.split("|", maxsplit=3)
        if len(fields) == 4:  # not a line of a longer comment
            number, reason, comment, folder = fields
            if "held" in reason.lower() and Path(folder).resolve() == here:
                jobs.append(HeldJob(number, reason, tuple(re.findall(DIGEST, comment))))
    return jobs


class ExecutorPatch:
    """Patches Snakemake's SLURM executor (2.8) where it waits for jobs that never report an end,
    or gives up too early.

    - Where SLURM does not answer, the executor asks again up to `status_attempts` times, perhaps
      by `sacct`, which never answers without a database, then forgets the jobs. So it asks once,
      and if there is no answer it keeps all jobs until the next time.
    - It waits for jobs that SLURM no longer knows, or that SLURM holds although they are done. A
      job whose outputs were missing and exist at two checks in a row has succeeded, unless SLURM
      says that it runs: it first deletes outputs that an earlier job left, then publishes its own.
    - When it is to end it first sleeps, for up to three minutes.
    - A job that sbatch refuses has failed, and its retries follow at once. Where the limit of jobs
      is reached or the controller is away, it is submitted again in a minute.
    - Why a job failed, or was refused by sbatch, is hidden together with the rules (`quiet`).
    """

    def __init__(self, workflow: Any):
        self.executor, self.dag = workflow.scheduler._executor, workflow.dag
        self.complete: set[str] = set()  # jobs whose outputs existed at the last check
        self.reported: set[HeldJob] = set()
        self.has_refused = False  # for now
        self.check, self.sleep = self.executor.check_active_jobs, self.executor.sleep
        workflow.executor_settings.status_attempts = 1
        self.executor.check_active_jobs = self.check_active_jobs
        self.executor.sleep = self.sleep_until_end
        self.executor.print_job_error = _print_job_error
        self.report_error = self.executor._report_job_error_threadsafe
        self.executor._report_job_error_threadsafe = self.resubmit_or_report

    def resubmit_or_report(self, submitted: Any, message: str) -> None:
        """Submit a job again in a while if sbatch says that it is full or away, else report that
        the job has failed."""
        if not (reason := TEMPORARY_REFUSAL.search(message)):
            self.report_error(submitted, message)
            return
        if not self.has_refused:
            self.has_refused = True
            note = "jobs that it refuses are submitted again, once a minute"
            print(f"sbatch says '{reason[0]}': {note}", file=sys.stderr)
        timer = threading.Timer(RESUBMIT_SECONDS, self._submit, [submitted.job])
        timer.daemon = True
        timer.start()

    def _submit(self, job: Any) -> None:
        if self.executor.wait:  # until the driver ends
            self.executor._job_submission_executor.submit(self.executor.run_job, job)

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        """Report the jobs that have ended, and yield the others."""
        failures = self.executor._status_query_failures
        unfinished = [job async for job in self.check(active_jobs)]
        if is_silent := self.executor._status_query_failures > failures:
            unfinished = active_jobs
        complete = {job.external_jobid for job in unfinished if self._has_outputs(job.job)}
        for job in unfinished:
            number = job.external_jobid
            if number in complete & self.complete and (is_silent or _is_over(number)):
                self.executor.report_job_success(job)
            else:
                yield job
        self.complete = complete
        if len(unfinished) == len(active_jobs) > 0:
            for held_job in held_jobs():
                if held_job not in self.reported:
                    self.reported.add(held_job)
                    print(held_job, file=sys.stderr)

    async def sleep_until_end(self) -> None:
        """Sleep until the next check, or until the driver is to end."""
        sleeping = asyncio.ensure_future(self.sleep())
        while self.executor.wait and not sleeping.done():
            await asyncio.wait([sleeping], timeout=1)

    def _has_outputs(self, job: Any) -> bool:
        """Whether outputs that were missing when the driver started exist now."""
        return all(
            file in self.dag.reason(member).missing_output and Path(file).exists()
            for member in (job if job.is_group() else [job])
            for file in member.output
        )


def _print_job_error(submitted: Any, message: Any = None, aux_logs: Any = (), **_: Any) -> None:
    logs = " ".join(map(str, [*submitted.job.log, *aux_logs]))
    print(f"error: {submitted.job.name}: {message or 'failed'}; its log: {logs}", file=sys.stderr)


def _is_over(job: str) -> bool:
    """Cancel a job if it has not begun; return whether it has ended or never will begin."""
    _output("scancel", "--state=PENDING", job)
    return not _output("squeue", "--noheader", "--states=RUNNING,CONFIGURING", "--jobs", job)


def _output(*command: str) -> str:
    """Run a SLURM command and return its output; empty if it fails or takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
