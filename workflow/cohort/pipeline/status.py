"""The state of a cell: done, diverged, running, failed or missing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cohort.cell.planned import Planned
from cohort.core.errors import UserError
from cohort.core.layout import state_folder, train_log
from cohort.core.log import last_line
from cohort.records.record import read
from cohort.training.job.lease import is_held, was_left

STATES = ("done", "diverged", "running", "failed", "missing")
FINISHED_STATES = ("done", "diverged")
SLURM_LOGS = Path(".snakemake/slurm_logs/rule_train")
START_SECONDS = 60.0  # at most, from the start of a job to the start of its cell


@dataclass(frozen=True)
class CellStatus:
    """The state of a cell, and the seconds that its rounds took if it has a record."""

    planned: Planned
    state: str
    seconds: float = 0.0

    @property
    def is_finished(self) -> bool:
        """Whether the cell has a valid record."""
        return self.state in FINISHED_STATES


def status_of(planned: Planned, slurm_logs: Mapping[str, Path]) -> CellStatus:
    """The state of a cell by its record, its state folder and the log of its last job."""
    if Path(planned.path).exists():
        try:
            record = read(planned.path)
        except UserError:
            return CellStatus(planned, "failed")
        seconds = sum(value for _, value in record.history.cost["seconds"])
        return CellStatus(planned, record.header["status"], seconds)
    folder, log = state_folder(planned.path), last_log(planned, slurm_logs)
    if is_held(folder):
        return CellStatus(planned, "running")
    failed = log is not None and (log != train_log(planned.path) or _ends_in_error(log))
    return CellStatus(planned, "failed" if was_left(folder) or failed else "missing")


def last_log(planned: Planned, slurm_logs: Mapping[str, Path]) -> Path | None:
    """The log of a cell's last attempt, or SLURM's if the job died before the cell began."""
    own, slurm = train_log(planned.path), slurm_logs.get(planned.digest)
    if not own.exists() or slurm is None:
        return own if own.exists() else slurm
    died_early = (
        slurm.stat().st_mtime > own.stat().st_mtime
        and "error" in last_line(slurm)
        and not _ends_in_error(own)
    )
    return slurm if died_early else own


def find_slurm_logs(quiet_seconds: float = START_SECONDS) -> dict[str, Path]:
    """SLURM's newest log of each cell, by digest. If a node dies before the cell starts, this log
    is all that is left of the job.

    Logs of jobs that may still be starting are skipped: a log must end in an error or have been
    written at least `quiet_seconds` ago.
    """
    files = sorted((file.stat().st_mtime, file) for file in SLURM_LOGS.glob("*/*.log"))
    return {
        file.parent.name.rpartition("_")[2]: file
        for written, file in files
        if time.time() - written > quiet_seconds or "error" in last_line(file)
    }


def failure(planned: Planned, slurm_logs: Mapping[str, Path]) -> str:
    """A failed cell with the last line of its log, and the command that shows the whole log."""
    log = last_log(planned, slurm_logs)
    reason = f"{last_line(log)}\n  more: less {log}" if log else "no log"
    return f"failed: {planned.path}\n  {reason}"


def failures(cells: Iterable[Planned]) -> list[str]:
    """The failures of these cells, of those without a record, when no job is running any more."""
    logs = find_slurm_logs(quiet_seconds=0)
    missing = [planned for planned in cells if not Path(planned.path).exists()]
    return [
        failure(planned, logs) for planned in missing if status_of(planned, logs).state == "failed"
    ]


def _ends_in_error(log: Path) -> bool:
    return last_line(log).startswith("error: ")
