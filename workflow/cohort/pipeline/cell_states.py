"""The state of a cell: done, diverged, running, stopped, failed, waiting or missing."""

import math
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cohort.core import UserError, user_files
from cohort.core.paths import state_folder, train_log
from cohort.core.process import SESSION, last_line, last_session
from cohort.plan import Plan, cost
from cohort.records.record import read
from cohort.training.cell import Cell
from cohort.training.job.lease import is_held, saved_header, was_abandoned

STATES = ("done", "diverged", "running", "stopped", "failed", "waiting", "missing")
SLURM_LOGS = Path(".snakemake/slurm_logs/rule_train")
START_SECONDS = 60.0  # at most, from the start of a job to the start of its cell
STOPPED = "error: stopped "  # begins the last line of a cell that a signal stopped
PROGRESS = re.compile(r"round (\d+)/\d+ .* (\S+) rounds/s ")


@dataclass(frozen=True)
class CellStatus:
    """The state of a cell, with the seconds that a finished one's rounds took and its device if it
    was trained here on one alone, or the round that an unfinished one reached and its rounds per
    second. `changed` are the user's files that made its record or checkpoint in another version. A
    `restored` record is from a release."""

    cell: Cell
    state: str
    seconds: float = 0.0
    device: str = ""
    round: int = 0
    rate: float = 0.0
    reason: str = ""
    changed: tuple[str, ...] = ()
    restored: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether the cell has a valid record."""
        return self.state in ("done", "diverged")


def status_of(cell: Cell, slurm_logs: Mapping[str, Path]) -> CellStatus:
    """Read the state of a cell from its record, its state folder and the log of its last job."""
    if Path(cell.path).exists():
        return _recorded_status(cell)
    folder, log = state_folder(cell.path), last_log(cell, slurm_logs)
    header = saved_header(folder)
    saved, changed = header.get("round"), tuple(user_files.changed_files(header))
    if is_held(folder):
        # the latest round in its log, if the last job wrote any
        matches = PROGRESS.findall(last_session(train_log(cell.path)))
        latest, rate = matches[-1] if matches else (0, 0.0)
        return CellStatus(cell, "running", round=max(int(latest), saved or 0), rate=float(rate))
    words = last_line(log) if log else ""  # `cohort run` writes no log
    failed = log is not None and (log != train_log(cell.path) or words.startswith("error: "))
    stopped = words.startswith(STOPPED) or (saved is not None and not words)
    if not stopped and (failed or was_abandoned(folder)):
        if not failed and words:
            strategy = cell.settings.strategy
            words = f"strategy '{strategy}' was killed after: {words}"
        return CellStatus(cell, "failed", round=saved or 0, reason=words, changed=changed)
    state = "missing" if saved is None else "stopped"
    return CellStatus(cell, state, round=saved or 0, changed=changed)


def _recorded_status(cell: Cell) -> CellStatus:
    try:
        record = read(cell.path)
    except UserError as error:
        return CellStatus(cell, "failed", reason=str(error))
    provenance, restored = record.header["provenance"], "restored" in record.header
    devices = provenance["devices"]
    return CellStatus(
        cell,
        record.header["status"],
        seconds=sum(value for _, value in record.history.cost["seconds"]),
        device="" if restored or len(devices) > 1 else devices[0],
        changed=tuple(user_files.changed_files(provenance)),
        restored=restored,
    )


def core_hours(plan: Plan, cells: Iterable[Cell]) -> float:
    """Estimate the hours of one CPU core that cells take, their start included."""
    return sum(cost.seconds(cell, plan.dataset_info(cell)) for cell in cells) / 3600


def hours_left(plan: Plan, cells: Iterable[CellStatus]) -> dict[str, float]:
    """Estimate the hours that unfinished cells which can run here still take on one device, by
    device: on one CPU core (`""`), and at the pace of the finished cells of each kind of device, of
    those with the same network where there are any."""
    starts, remaining = 0.0, defaultdict[str, float](float)  # seconds; the latter by network
    taken: defaultdict[tuple[str, str], float] = defaultdict(float)
    estimated: defaultdict[tuple[str, str], float] = defaultdict(float)
    for status in cells:
        settings, info = status.cell.settings, plan.dataset_info(status.cell)
        seconds = cost.round_seconds(status.cell, info)
        if status.is_finished and status.device:
            for network in ("", settings.model):
                taken[status.device, network] += status.seconds
                estimated[status.device, network] += seconds
        elif not status.is_finished and status.state != "waiting":
            remaining[settings.model] += seconds * (1 - status.round / settings.rounds)
            starts += cost.START_SECONDS
    paces = {("", ""): 1.0} | {key: taken[key] / estimated[key] for key in taken}
    hours = dict.fromkeys((device for device, _ in paces), starts / 3600)
    for device in hours:
        for network, seconds in remaining.items():
            hours[device] += seconds * paces.get((device, network), paces[device, ""]) / 3600
    return hours


def last_log(cell: Cell, slurm_logs: Mapping[str, Path]) -> Path | None:
    """The log of a cell's last attempt, SLURM's if the job died before the cell began, or None."""
    log, slurm_log = train_log(cell.path), slurm_logs.get(cell.digest)
    if not log.exists() or slurm_log is None:
        return log if log.exists() else slurm_log
    if "error" not in last_line(slurm_log) or last_line(log).startswith("error: "):
        return log
    # A process of a job that ran out of memory may live long enough to begin the log.
    began = last_line(log) and not last_line(log).startswith(SESSION)
    return log if began and _written(slurm_log) <= _written(log) else slurm_log


def find_slurm_logs(quiet_seconds: float = START_SECONDS) -> dict[str, Path]:
    """SLURM's newest log of each cell, by digest: all that is left of a job whose node dies before
    the cell starts. Logs of jobs that may still be starting are skipped: written within
    `quiet_seconds`, and without an error at the end."""
    files = sorted((_written(file), file) for file in SLURM_LOGS.glob("*/*.log"))
    return {
        file.parent.name.rpartition("_")[2]: file
        for written, file in files
        if time.time() - written > quiet_seconds or "error" in last_line(file)
    }


def _written(log: Path) -> float:
    """The time at which a log was last written; infinity if it has just been deleted."""
    try:
        return log.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def failure_text(status: CellStatus, slurm_logs: Mapping[str, Path]) -> str:
    """Text on a failed cell: its log's last words, and the command that shows the whole log."""
    log = last_log(status.cell, slurm_logs)
    more = f"\n  more: less {log}" if log else ""
    return f"failed: {status.cell.path}\n  {status.reason or 'no log'}{more}"


def failure_texts(cells: Iterable[Cell]) -> list[str]:
    """A text on each of these cells that failed, once no job is running any more."""
    logs = find_slurm_logs(quiet_seconds=0)
    statuses = (status_of(cell, logs) for cell in cells if not Path(cell.path).exists())
    return [failure_text(status, logs) for status in statuses if status.state == "failed"]
