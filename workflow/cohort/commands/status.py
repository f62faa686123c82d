"""`cohort status`: how many cells are done, running, stopped, failed, waiting and missing, and what
the missing ones cost."""

import argparse
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.commands import shared
from cohort.commands.shared import prose
from cohort.core.lazy import lazy
from cohort.core.paths import CELLS
from cohort.core.text import counted, duration_text
from cohort.pipeline import cell_states, slurm
from cohort.pipeline.cell_states import STATES, CellStatus
from cohort.plan import Plan, all_studies, cost
from cohort.results.release.folder import release_folders, released_digests
from cohort.results.series import FULL
from cohort.training.cell import Cell

if TYPE_CHECKING:
    from rich import live
    from rich import text as rich_text
else:  # only in a terminal
    live, rich_text = lazy("rich.live"), lazy("rich.text")

Statuses = dict[tuple[str, str], list[CellStatus]]
"""The states of the cells of each experiment, by study and experiment."""

ALWAYS = ("done", "missing")  # the states that have a column even if no cell is in them
MOST_LISTED = 20  # cells of a state
EVERY = 2.0  # seconds between two looks of --follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, what to print instead of their status, and --json."""
    shared.add_studies(parser)
    instead = parser.add_mutually_exclusive_group()
    text = "estimate the time of the missing cells, and the jobs that a cluster sees"
    instead.add_argument("--cost", action="store_true", help=text)
    text = "follow the cells until all are done"
    instead.add_argument("--follow", action="store_true", help=text)
    shared.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the status of the studies, or their cost."""
    plan = shared.load_plan(options)
    if options.cost:
        costs = summarize_cost(plan)
        shared.report(cost_lines(costs), lambda: costs, as_json=options.json)
    elif options.follow:
        with contextlib.suppress(KeyboardInterrupt):
            _follow(plan)
    else:
        by_experiment = statuses(plan, cell_states.find_slurm_logs())
        lines = status_lines(plan, by_experiment)
        shared.report(lines, lambda: summarize(plan, by_experiment), as_json=options.json)


def _follow(plan: Plan) -> None:
    """Show the status in place or, in a pipe, print it whenever the state of a cell changes."""
    if shared.is_terminal():
        with live.Live(auto_refresh=False) as display:
            for by_experiment in snapshots(plan):
                shown = rich_text.Text.from_ansi("\n".join(status_lines(plan, by_experiment)))
                display.update(shown, refresh=True)
        return
    before: list[str] = []
    for by_experiment in snapshots(plan):
        if before != (states := [cell.state for cell in unique_cells(by_experiment)]):
            print(*status_lines(plan, by_experiment), sep="\n", flush=True)
        before = states


def snapshots(plan: Plan) -> Iterator[Statuses]:
    """Yield the states of all cells every few seconds, until all that can be run here are done."""
    finished: dict[str, CellStatus] = {}
    while True:
        yield (by_experiment := statuses(plan, cell_states.find_slurm_logs(), finished))
        cells = unique_cells(by_experiment)
        finished = {status.cell.digest: status for status in cells if status.is_finished}
        if all(status.is_finished or status.state == "waiting" for status in cells):
            return
        time.sleep(EVERY)


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
        cells = []
        for row in rows.get(key, []):
            status = by_digest.get(row.digest)
            if status is None or not Path(status.cell.path).exists():
                status = cell_states.status_of(plan.cells[row.digest], slurm_logs)
            by_digest[row.digest] = status
            cells.append(status)
        for row, reason in plan.skipped(*key):
            cells.append(CellStatus(plan.cells[row.digest], "waiting", reason=reason))
        if cells:
            by_experiment[key] = cells
    return by_experiment


def unique_cells(by_experiment: Statuses) -> list[CellStatus]:
    """The statuses of all experiments, each cell once even if several share it."""
    every = (status for group in by_experiment.values() for status in group)
    return list({status.cell.digest: status for status in every}.values())


def status_lines(plan: Plan, by_experiment: Statuses) -> Iterator[str]:
    """Yield a line for each experiment with a column for each state, the cells that are under way,
    jobs that SLURM holds, the time left, released runs, and failures."""
    cells = unique_cells(by_experiment)
    occurring = {*ALWAYS, *(status.state for status in cells)}
    states = [state for state in STATES if state in occurring]
    rows = []
    for (study, experiment), group in by_experiment.items():
        count = Counter(status.state for status in group)
        rows.append([f"{study}.{experiment}", *(count[state] for state in states)])
    yield from shared.table(["experiment", *states], rows, ["", *states])
    for state in ("running", "stopped"):
        here = [status for status in cells if status.state == state]
        for status in here[:MOST_LISTED]:
            rate = f"{status.rate:.3g} rounds/s  " if status.rate else ""
            line = f"{state} {_progress(status)}  {rate}"
            name = shared.shortened(_name(status), shared.WIDTH - len(line))
            yield shared.paint(line + name, state)
        if len(here) > MOST_LISTED:
            yield f"{state}: {len(here) - MOST_LISTED} more (--json lists all)"
    yield from map(str, slurm.held_jobs())
    if restored := sum(status.restored for status in cells):
        yield f"restored from releases, not trained here: {restored}"
    yield from time_left_lines(plan, cells)
    yield from released_lines(plan, [cell.cell for cell in cells if not cell.is_finished])
    yield from map(prose, [*plan.notes, *cell_states.changed_sentences(cells)])
    slurm_logs = cell_states.find_slurm_logs()
    for status in cells:
        if status.state == "failed":
            yield "\n" + shared.paint(cell_states.failure_text(status, slurm_logs), "failed")


def summarize(plan: Plan, by_experiment: Statuses) -> dict[str, Any]:
    """For JSON: counts of cells by state and of restored ones, every unfinished cell, held jobs,
    hours left, notes, and the cells that own files made in another version."""
    cells = unique_cells(by_experiment)
    experiments = []
    for (study, experiment), group in by_experiment.items():
        counts = dict.fromkeys(STATES, 0) | Counter(status.state for status in group)
        experiments.append({"study": study, "experiment": experiment, "cells": len(group)} | counts)
    unfinished = [
        {
            **{"digest": status.cell.digest, "path": status.cell.path, "state": status.state},
            **{"round": status.round, "rounds": status.cell.settings.rounds},
            "reason": status.reason,
        }
        for status in cells
        if not status.is_finished
    ]
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "restored": sum(status.restored for status in cells),
        "unfinished": unfinished,
        "held_jobs": [job._asdict() for job in slurm.held_jobs()],
        "hours_left": cell_states.hours_left(plan, cells),
        "notes": plan.notes,
        "made_by_another": [
            {"path": status.cell.path, "files": status.changed}
            for status in cells
            if status.changed
        ],
    }


def _name(status: CellStatus) -> str:
    """A cell's name for people: its path without the folder of all cells and the suffix."""
    return status.cell.path.removeprefix(f"{CELLS}/").removesuffix(".h5")


def _progress(status: CellStatus) -> str:
    return f"{status.round}/{status.cell.settings.rounds}"


def time_left_lines(plan: Plan, cells: Iterable[CellStatus]) -> Iterator[str]:
    """Yield a line on the time left at the pace of finished cells, one for each kind of device, or
    as estimated if none has finished here."""
    estimated = cell_states.hours_left(plan, cells)
    measured = {device: hours for device, hours in estimated.items() if device}
    for device, hours in (measured or estimated).items():
        if hours:
            pace = f"at the pace of the cells done on {device}" if device else "of one CPU core"
            yield f"left: about {duration_text(3600 * hours)} {pace}"


def summarize_cost(plan: Plan) -> dict[str, Any]:
    """The cost of each experiment and of all missing cells, as numbers for JSON."""
    slurm_logs, experiments = cell_states.find_slurm_logs(), []
    longest = plan.config.get("max_runtime", cost.MAX_RUNTIME)
    by_digest: dict[str, CellStatus] = {}
    for (study, name), rows in plan.rows(plan.listed).items():
        cells = (plan.cells[row.digest] for row in rows)
        own = {cell.digest: cell_states.status_of(cell, slurm_logs) for cell in cells}
        by_digest |= own
        missing = [status.cell for status in own.values() if not status.is_finished]
        # by the megabytes and minutes that they request, the jobs that a cell takes in a row
        jobs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for cell in missing:
            info = plan.dataset_info(cell)
            request = cost.resource_request(cell, info, longest=longest)
            jobs[request].append(cost.jobs_needed(cell, info, longest))
        requested = [
            {"count": len(row), "megabytes": mb, "minutes": minutes, "resumed": max(row) - 1}
            for (mb, minutes), row in sorted(jobs.items())
        ]
        experiments.append(
            {
                **{"study": study, "experiment": name, "cells": len(own), "missing": len(missing)},
                "rounds": sum(cell.settings.rounds for cell in missing),
                "core_hours": cell_states.core_hours(plan, missing),
                "jobs": requested,
            }
        )
    missing = [status.cell for status in by_digest.values() if not status.is_finished]
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "notes": [*plan.notes, *released_lines(plan, missing)],
        "missing": len(missing),
        "core_hours": cell_states.core_hours(plan, missing),
        "hours_left": cell_states.hours_left(plan, by_digest.values()),
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
    titles, *lines = shared.table(("experiment", "cells", "missing", "one core"), rows)
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
