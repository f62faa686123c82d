"""What is done and what is not, what it costs, what a record says: for a person at a terminal."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cohort.cell.planned import Planned
from cohort.core.errors import UserError
from cohort.core.log import last_line
from cohort.pipeline.stages import drawn_files
from cohort.plan import CLAIMS_TABLE, Plan
from cohort.plan.cost import START_SECONDS, round_seconds
from cohort.plan.requests import wanted
from cohort.records.record import Record, read
from cohort.tables.sizes import needs_no_runs
from cohort.training.job.lease import is_held, state_folder, was_left

STATES = ("done", "diverged", "running", "failed", "missing")
SLURM_LOGS = Path(".snakemake/slurm_logs/rule_train")
BEGINS_SECONDS = 60.0  # at most, from a job's start to its cell's


@dataclass(frozen=True)
class CellStatus:
    """Where a cell stands; its record's own seconds where there is one."""

    planned: Planned
    state: str
    seconds: float = 0.0


def status_of(planned: Planned, slurm_logs: Mapping[str, Path]) -> CellStatus:
    """Look at a cell's record, then at its state folder, then at what its last job said."""
    if Path(planned.path).exists():
        try:
            record = read(planned.path)
        except UserError:
            return CellStatus(planned, "failed")
        return CellStatus(
            planned,
            record.header["status"],
            sum(value for _, value in record.history.cost["seconds"]),
        )
    folder, log = state_folder(planned.path), telling_log(planned, slurm_logs)
    if is_held(folder):
        return CellStatus(planned, "running")
    says_so = log is not None and (log != log_of(planned) or last_line(log).startswith("error: "))
    return CellStatus(planned, "failed" if was_left(folder) or says_so else "missing")


def log_of(planned: Planned) -> Path:
    """Where the workflow logs a cell."""
    return Path("results/logs/train", Path(planned.path).relative_to("results/cells")).with_suffix(
        ".log"
    )


def telling_log(planned: Planned, slurm_logs: Mapping[str, Path]) -> Path | None:
    """The log to read of a cell's last attempt: its own, or SLURM's where the job died before the cell could begin."""
    own, slurm = log_of(planned), slurm_logs.get(planned.digest)
    if not own.exists() or slurm is None:
        return own if own.exists() else slurm
    died_early = (
        slurm.stat().st_mtime > own.stat().st_mtime
        and "error" in last_line(slurm)
        and not last_line(own).startswith("error: ")
    )
    return slurm if died_early else own


def logs_of_slurm(quiet_seconds: float = BEGINS_SECONDS) -> dict[str, Path]:
    """The newest log of SLURM's own for each cell, by digest: all that is left of a job whose node died before the cell began.

    One that was written to just now may be of a job that is about to begin: it must have been quiet for so long, or end in an error.
    """
    files = sorted((file.stat().st_mtime, file) for file in SLURM_LOGS.glob("*/*.log"))
    over = (
        file
        for written, file in files
        if time.time() - written > quiet_seconds or "error" in last_line(file)
    )
    return {file.parent.name.rpartition("_")[2]: file for file in over}


def print_status(plan: Plan) -> None:
    """A line for each experiment, the failed cells with the last line of their logs, and figures that stand on missing records."""
    failed: dict[str, Planned] = {}  # each once, however many experiments show it
    slurm_logs = logs_of_slurm()
    _row("experiment", *STATES)
    for study in map(plan.study, plan.listed):
        for name, experiment in study.experiments.items():
            found = [status_of(plan.cells[row.digest], slurm_logs) for row in experiment.rows]
            counts = Counter(status.state for status in found)
            _row(f"{study.name}.{name}", *(counts[state] for state in STATES))
            failed |= {
                status.planned.digest: status.planned
                for status in found
                if status.state == "failed"
            }
            shown = [
                key
                for key, spec in study.drawn().items()
                if spec["experiment"] == name and not needs_no_runs(spec)
            ]
            shown += [CLAIMS_TABLE] * (name in study.claimed())
            drawn = [key for key in shown if _exist(drawn_files(plan, study, key))]
            absent = len(found) - counts["done"] - counts["diverged"]
            if drawn and absent:
                print(
                    f"  {', '.join(drawn)} was drawn, but {absent} of its records are not there: run snakemake again"
                )
    for note in plan.notes:
        print(note)
    for planned in failed.values():
        print("\n" + failure(planned, slurm_logs))


def failure(planned: Planned, slurm_logs: Mapping[str, Path]) -> str:
    """A failed cell, the last line of its log and the command that shows more."""
    log = telling_log(planned, slurm_logs)
    return f"failed: {planned.path}\n  " + (
        f"{last_line(log)}\n  more: less {log}" if log else "no log"
    )


def failures(plan: Plan) -> list[str]:
    """The same of every failed cell that has no record, when no job is left."""
    slurm_logs = logs_of_slurm(quiet_seconds=0)
    without = (planned for planned in plan.cells.values() if not Path(planned.path).exists())
    return [
        failure(planned, slurm_logs)
        for planned in without
        if status_of(planned, slurm_logs).state == "failed"
    ]


def print_cost(plan: Plan) -> None:
    """A line for each experiment: how much is missing, how long that is estimated to take, how true the estimate was so far."""
    _row("experiment", "cells", "missing", "rounds", "core hours", "measured/est.")
    together: dict[str, Planned] = {}  # likewise
    slurm_logs = logs_of_slurm()
    for study in map(plan.study, plan.listed):
        for name, experiment in study.experiments.items():
            found = [status_of(plan.cells[row.digest], slurm_logs) for row in experiment.rows]
            missing = [
                status.planned for status in found if status.state not in ("done", "diverged")
            ]
            together |= {planned.digest: planned for planned in missing}
            hours = _hours(plan, missing)
            done = [status for status in found if status.seconds]
            ratio = (
                sum(status.seconds for status in done)
                / _estimate(plan, [status.planned for status in done])
                if done
                else None
            )
            rounds = sum(planned.settings["rounds"] for planned in missing)
            _row(
                f"{study.name}.{name}",
                len(found),
                len(missing),
                rounds,
                f"{hours:.3g}",
                f"{ratio:.2f}" if ratio else "-",
            )
            jobs = Counter(
                wanted(planned.settings, plan.datasets[planned.settings["dataset"]])
                for planned in missing
            )
            for (megabytes, minutes), count in sorted(jobs.items()):
                print(
                    f"  {_counted(count, 'job')} of {megabytes} MB and {minutes} minutes on a cluster"
                )
    for note in plan.notes:
        print(note)
    total = _hours(plan, list(together.values()))
    print(
        f"{total:.3g} core hours are estimated for the {len(together)} cells that are missing, with one CPU core for each"
    )


def print_record(path: str) -> None:
    """A record in words."""
    record = read(path)
    print(
        json.dumps(
            {key: value for key, value in record.header.items() if key != "settings"}, indent=1
        )
    )
    print(
        "settings: "
        + ", ".join(f"{key}={value}" for key, value in record.header["settings"].items())
    )
    for name, pairs in (record.history.metrics | record.history.cost).items():
        values = np.array([value for _, value in pairs])
        print(
            f"{name:18} {len(values):6} values  last {values[-1]:.6g}  lowest {values.min():.6g}  highest {values.max():.6g}"
        )
    print(_clients(record))


def _clients(record: Record) -> str:
    accuracy, selected = record.clients["accuracy"], record.clients["selected"]
    low, middle, high = np.nanpercentile(accuracy, [10, 50, 90])
    return (
        f"{len(accuracy)} clients: chosen {selected.min()} to {selected.max()} times; accuracy on their own samples "
        f"{low:.3f} / {middle:.3f} / {high:.3f} (10th percentile, median, 90th)"
    )


def _estimate(plan: Plan, cells: Iterable[Planned]) -> float:
    return sum(
        round_seconds(planned.settings, plan.datasets[planned.settings["dataset"]])
        for planned in cells
    )


def _hours(plan: Plan, cells: list[Planned]) -> float:
    return (_estimate(plan, cells) + START_SECONDS * len(cells)) / 3600


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _exist(files: Iterable[str]) -> bool:
    return all(Path(file).exists() for file in files)


def _row(name: str, *values: object) -> None:
    print(f"{name:28}" + "".join(f"{value!s:>14}" for value in values))
