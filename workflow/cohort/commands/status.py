"""`cohort status`: how many cells are done, running, stopped, failed, waiting and missing, and what
the missing ones cost."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.commands.planning import add_json, add_studies, load_plan
from cohort.commands.screen import (
    WIDTH,
    is_terminal,
    paint,
    prose,
    report,
    shortened,
    table,
)
from cohort.core.lazy import lazy
from cohort.core.paths import CELLS
from cohort.core.text import counted, duration_text
from cohort.pipeline.cell_states import (
    STATES,
    CellStatus,
    changed_sentences,
    core_hours,
    failure_text,
    find_slurm_logs,
    hours_left,
    status_of,
    waiting_cells,
)
from cohort.pipeline.slurm import held_jobs
from cohort.plan import Plan, all_studies
from cohort.plan.cost import MAX_RUNTIME, jobs_needed, resource_request
from cohort.results.release.folder import release_folders, released_digests
from cohort.results.series import FULL
from cohort.training.cell import Cell

if TYPE_CHECKING:
    from rich import live, text
else:  # only in a terminal
    live, text = lazy("rich.live"), lazy("rich.text")

Statuses = dict[tuple[str, str], list[CellStatus]]
"""The states of the cells of each experiment, by study and experiment."""

ALWAYS = ("done", "missing")  # the states that have a column even if no cell is in them
MOST_LISTED = 20  # cells of a state
EVERY = 2.0  # seconds between two looks of --follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, what to print instead of their status, and --json."""
    add_studies(parser)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--cost",
        action="store_true",
        help="estimate the time of the missing cells, and the jobs that a cluster sees",
    )
    instead.add_argument(
        "--follow", action="store_true", help="follow the cells until all are done"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the status of the studies, or their cost."""
    plan = load_plan(options)
    if options.follow:
        with contextlib.suppress(KeyboardInterrupt):
            if not is_terminal():
                for line in change_lines(snapshots(plan)):
                    print(line, flush=True)
                return
            with live.Live(auto_refresh=False) as screen:
                for by_experiment in snapshots(plan):
                    shown = text.Text.from_ansi("\n".join(status_lines(plan, by_experiment)))
                    screen.update(shown, refresh=True)
    elif options.cost:
        costs = summarize_cost(plan)
        report(cost_lines(costs), lambda: costs, as_json=options.json)
    else:
        by_experiment = statuses(plan, find_slurm_logs())
        lines = status_lines(plan, by_experiment)
        report(lines, lambda: summarize(plan, by_experiment), as_json=options.json)


def snapshots(plan: Plan) -> Iterator[Statuses]:
    """Yield the states of all cells every few seconds, until all that can be run here are done."""
    finished: dict[str, CellStatus] = {}
    while True:
        by_experiment = statuses(plan, find_slurm_logs(), finished)
        yield by_experiment
        cells = unique_cells(by_experiment)
        finished = {status.cell.digest: status for status in cells if status.is_finished}
        if all(status.is_finished for status in runnable_cells(cells)):
            return
        time.sleep(EVERY)


def change_lines(snapshots: Iterable[Statuses]) -> Iterator[str]:
    """Yield a line on all cells, then one for each cell that changes its state."""
    before: dict[str, str] = {}
    for cells in map(unique_cells, snapshots):
        done = f"{sum(status.is_finished for status in cells)} of {len(cells)}"
        now = f"{datetime.now():%H:%M:%S}"
        if not before:
            yield f"{now}  {done} cells are done"
        for status in cells:
            if before.get(status.cell.digest, status.state) != status.state:
                where = f" at {status.round}/{status.rounds}" if status.round else ""
                yield f"{now}  {status.state}{where}  {cell_name(status)}  ({done} done)"
        before = {status.cell.digest: status.state for status in cells}


def statuses(
    plan: Plan, slurm_logs: Mapping[str, Path], finished: Mapping[str, CellStatus] | None = None
) -> Statuses:
    """Read the states of all cells of the listed studies, those that cannot be run here included.

    `finished` cells, by digest, are not read again while their records exist.
    """
    rows = plan.rows(plan.listed)
    skipped = ((study, name) for study in plan.listed for name in plan.study(study).skipped)
    by_digest = dict(finished or {})
    by_experiment = {}
    for key in dict.fromkeys([*rows, *skipped]):
        cells = waiting_cells(plan, *key)
        for row in reversed(rows.get(key, [])):
            status = by_digest.get(row.digest)
            if status is None or not Path(status.cell.path).exists():
                status = status_of(plan.cells[row.digest], slurm_logs)
            by_digest[row.digest] = status
            cells.insert(0, status)
        if cells:
            by_experiment[key] = cells
    return by_experiment


def unique_cells(by_experiment: Statuses) -> list[CellStatus]:
    """The statuses of all experiments, each cell once even if several share it."""
    every = (status for group in by_experiment.values() for status in group)
    return list({status.cell.digest: status for status in every}.values())


def status_lines(plan: Plan, by_experiment: Statuses) -> Iterator[str]:
    """Yield a line for each experiment, the cells that are under way, jobs that SLURM holds, the
    time left, released runs, and failures."""
    cells = unique_cells(by_experiment)
    yield from _count_table(by_experiment, cells)
    for state in ("running", "stopped"):
        here = [status for status in cells if status.state == state]
        for status in here[:MOST_LISTED]:
            rate = f"{status.rate:.3g} rounds/s  " if status.rate else ""
            line = f"{state} {status.round}/{status.rounds}  {rate}"
            yield paint(line + shortened(cell_name(status), WIDTH - len(line)), state)
        if len(here) > MOST_LISTED:
            yield f"{state}: {len(here) - MOST_LISTED} more (--json lists all)"
    yield from map(str, held_jobs())
    if restored := sum(status.restored for status in cells):
        yield f"restored from releases, not trained here: {restored}"
    yield from time_left_lines(plan, cells)
    yield from released_lines(plan, [cell.cell for cell in cells if not cell.is_finished])
    yield from map(prose, [*plan.notes, *changed_sentences(cells)])
    slurm_logs = find_slurm_logs()
    for status in cells:
        if status.state == "failed":
            yield "\n" + paint(failure_text(status, slurm_logs), "failed")


def _count_table(by_experiment: Statuses, cells: Iterable[CellStatus]) -> Iterator[str]:
    """Yield the lines of a table: one for each experiment, a column for each state that occurs."""
    occurring = {*ALWAYS, *(status.state for status in cells)}
    states = [state for state in STATES if state in occurring]
    rows = []
    for (study, experiment), group in by_experiment.items():
        count = Counter(status.state for status in group)
        rows.append([f"{study}.{experiment}", *(count[state] for state in states)])
    yield from table(["experiment", *states], rows, ["", *states])


def summarize(plan: Plan, by_experiment: Statuses) -> dict[str, Any]:
    """For JSON: counts of cells by state and of restored ones, every unfinished cell, held jobs,
    hours left, notes, and the cells that own files made in another version."""
    cells = unique_cells(by_experiment)
    experiments = []
    for (study, experiment), group in by_experiment.items():
        counts = Counter(status.state for status in group)
        states = {state: counts[state] for state in STATES}
        experiments.append({"study": study, "experiment": experiment, "cells": len(group)} | states)
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "restored": sum(status.restored for status in cells),
        "unfinished": [
            {
                **{"digest": status.cell.digest, "path": status.cell.path, "state": status.state},
                **{"round": status.round, "rounds": status.rounds, "reason": status.reason},
            }
            for status in cells
            if not status.is_finished
        ],
        "held_jobs": list(map(asdict, held_jobs())),
        "hours_left": hours_left(plan, runnable_cells(cells)),
        "notes": plan.notes,
        "made_by_another": [
            {"path": status.cell.path, "files": status.changed}
            for status in cells
            if status.changed
        ],
    }


def runnable_cells(cells: Iterable[CellStatus]) -> list[CellStatus]:
    """The cells that are done or can be run here."""
    return [status for status in cells if status.state != "waiting"]


def cell_name(status: CellStatus) -> str:
    """A cell's name for people: its path without the folder of all cells and the suffix."""
    return status.cell.path.removeprefix(f"{CELLS}/").removesuffix(".h5")


def time_left_lines(plan: Plan, cells: Iterable[CellStatus]) -> Iterator[str]:
    """Yield a line on the time left at the pace of finished cells, one for each kind of device, or
    as estimated if none has finished here."""
    estimated = hours_left(plan, runnable_cells(cells))
    measured = {device: hours for device, hours in estimated.items() if device}
    for device, hours in (measured or estimated).items():
        pace = f"at the pace of the cells done on {device}" if device else "of one CPU core"
        if hours:
            yield f"left: about {duration_text(3600 * hours)} {pace}"


def summarize_cost(plan: Plan) -> dict[str, Any]:
    """The cost of each experiment and of all missing cells, as numbers for JSON."""
    slurm_logs, experiments = find_slurm_logs(), []
    by_digest: dict[str, CellStatus] = {}
    for (study, name), rows in plan.rows(plan.listed).items():
        own = {row.digest: status_of(plan.cells[row.digest], slurm_logs) for row in rows}
        by_digest |= own
        missing = [status.cell for status in own.values() if not status.is_finished]
        cost = {
            "cells": len(own),
            "missing": len(missing),
            "rounds": sum(cell.settings.rounds for cell in missing),
            "core_hours": core_hours(plan, missing),
            "jobs": _jobs(plan, missing),
        }
        experiments.append({"study": study, "experiment": name} | cost)
    missing = [status.cell for status in by_digest.values() if not status.is_finished]
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "notes": [*plan.notes, *released_lines(plan, missing)],
        "missing": len(missing),
        "core_hours": core_hours(plan, missing),
        "hours_left": hours_left(plan, by_digest.values()),
    }


def cost_lines(costs: Mapping[str, Any]) -> Iterator[str]:
    """Yield each experiment's missing cells, their estimated time and the jobs that they request,
    and the time of all at the pace of the cells that have finished."""
    rows = [
        (
            f"{experiment['study']}.{experiment['experiment']}",
            *(experiment["cells"], experiment["missing"]),
            duration_text(3600 * experiment["core_hours"]),
        )
        for experiment in costs["experiments"]
    ]
    titles, *lines = table(("experiment", "cells", "missing", "one core"), rows)
    yield titles
    for line, experiment in zip(lines, costs["experiments"], strict=True):
        yield line
        for job in experiment["jobs"]:
            resumed = counted(job["resumed"], "more job")
            yield (
                f"  {counted(job['count'], 'job')} of {job['megabytes']} MB and {job['minutes']} "
                f"minutes on a cluster{f', resumed in up to {resumed}' if job['resumed'] else ''}"
            )
    yield from map(prose, [*costs["notes"], core_sentence(costs["core_hours"], costs["missing"])])
    for device, hours in costs["hours_left"].items():
        if device and hours:
            pace = f"at the pace of the cells done on {device}"
            yield prose(f"or {duration_text(3600 * hours)} {pace}")


def released_lines(plan: Plan, missing: Iterable[Cell]) -> Iterator[str]:
    """Yield a line on how many missing cells are released here, if any, and how to take them."""
    rest = every = {cell.digest for cell in missing}
    folders = release_folders(all_studies()) if every else {}
    released = {study: every & released_digests(folder) for study, folder in folders.items()}
    studies = []
    for study in sorted(released, key=lambda name: -len(released[name])):
        if released[study] & rest:
            studies.append(study)
            rest = rest - released[study]
    if count := len(every) - len(rest):
        scale = "" if plan.scale == FULL else f" --scale {plan.scale}"
        yield (
            f"{count:,} of {len(every):,} missing cells {'is' if count == 1 else 'are'} released: "
            f"cohort restore {' '.join(studies)}{scale}"
        )


def core_sentence(hours: float, missing: int) -> str:
    """How many cells are missing, and the hours of a core that they take."""
    if not missing:
        return "no cell is missing"
    cells = "1 cell is" if missing == 1 else f"{missing} cells are"
    return f"{cells} missing: about {duration_text(3600 * hours)} of one CPU core"


def _jobs(plan: Plan, cells: Iterable[Cell]) -> list[dict[str, int]]:
    """Count the cluster jobs of these cells by the megabytes and minutes that they request, and the
    most further jobs in which one of these cells is resumed."""
    longest = plan.config.get("max_runtime", MAX_RUNTIME)
    jobs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for cell in cells:
        info = plan.dataset_info(cell)
        jobs[resource_request(cell, info, longest=longest)].append(jobs_needed(cell, info, longest))
    return [
        {"count": len(needed), "megabytes": mb, "minutes": minutes, "resumed": max(needed) - 1}
        for (mb, minutes), needed in sorted(jobs.items())
    ]
