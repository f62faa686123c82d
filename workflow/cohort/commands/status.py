"""`cohort status`: how many cells are done, running, stopped, failed, waiting and missing."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cohort.commands.cost import released_lines
from cohort.commands.planning import add_json, add_studies, load_plan
from cohort.commands.screen import (
    WIDTH,
    bar,
    is_terminal,
    paint,
    print_json,
    prose,
    shortened,
    table,
)
from cohort.core.paths import CELLS, CLAIMS_TABLE, RELEASED
from cohort.core.text import counted, duration_text
from cohort.pipeline.cell_states import (
    STATES,
    CellStatus,
    changed_sentences,
    failure_text,
    find_slurm_logs,
    hours_left,
    status_of,
    waiting_cells,
)
from cohort.pipeline.slurm import held_jobs
from cohort.pipeline.stages import output_files
from cohort.plan import Plan, Study, all_studies
from cohort.results.release.folder import read_release, release_folders
from cohort.results.tables.sizes import needs_no_runs

Statuses = dict[tuple[str, str], list[CellStatus]]
"""The states of the cells of each experiment, by study and experiment."""

ALWAYS = ("done", "missing")  # the states that have a column even if no cell is in them
MOST_LISTED = 20  # cells of a state


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, --released, and --json."""
    add_studies(parser)
    parser.add_argument(
        "--released",
        action="store_true",
        help="count the runs in the releases of these studies (default: of all that have one)",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the status of the studies."""
    if options.released:
        releases = read_releases()
        options.studies = options.studies or sorted(releases)
        print_released(load_plan(options), releases, as_json=options.json)
        return
    plan = load_plan(options)
    if options.json:
        print_json(summarize(plan))
    else:
        print_status(plan)


def read_releases() -> dict[str, set[str]]:
    """Read the digests of the released runs by study."""
    releases: dict[str, set[str]] = {}
    for study, folder in release_folders(all_studies()).items():
        releases[study] = {run.header["digest"] for run in read_release(folder)}
    return releases


def print_released(plan: Plan, releases: Mapping[str, set[str]], *, as_json: bool) -> None:
    """Print how many cells of each experiment are released, and how large the releases are."""
    counts = []
    for (study, experiment), rows in plan.rows(plan.listed).items():
        digests = {row.digest for row in rows}
        released = len(digests & releases.get(study, set()))
        counts.append(
            {"study": study, "experiment": experiment, "cells": len(digests), "released": released}
        )
    places = release_folders(all_studies())
    folders = [places[study] for study in plan.listed if study in releases]
    size = sum(file.stat().st_size for folder in folders for file in folder.iterdir())
    if as_json:
        print_json({"experiments": counts, "bytes": size})
        return
    lines = [
        [f"{count['study']}.{count['experiment']}", count["cells"], count["released"]]
        for count in counts
    ]
    for line in table(["experiment", "cells", "released"], lines, ["", "", ""]):
        print(line)
    runs = sum(len(releases.get(study, ())) for study in plan.listed)
    print(f"{counted(runs, 'run')} in {RELEASED}, {size / 1e6:.2f} MB")


def statuses(
    plan: Plan, slurm_logs: Mapping[str, Path], finished: Mapping[str, CellStatus] | None = None
) -> Statuses:
    """Read the states of all cells of the listed studies, those that cannot be run here included.

    `finished` cells, by digest, are not read again while their records exist.
    """
    rows = plan.rows(plan.listed)
    names = dict.fromkeys(rows)
    for study in plan.listed:
        names |= dict.fromkeys((study, name) for name in plan.study(study).skipped)
    by_digest = {
        digest: status
        for digest, status in (finished or {}).items()
        if Path(status.cell.path).exists()
    }
    by_experiment = {}
    for study, experiment in names:
        for row in rows.get((study, experiment), []):
            if row.digest not in by_digest:
                by_digest[row.digest] = status_of(plan.cells[row.digest], slurm_logs)
        here = [by_digest[row.digest] for row in rows.get((study, experiment), [])]
        if here := here + waiting_cells(plan, study, experiment):
            by_experiment[study, experiment] = here
    return by_experiment


def unique_cells(by_experiment: Statuses) -> list[CellStatus]:
    """The statuses of all experiments, each cell once even if several share it."""
    every = (status for group in by_experiment.values() for status in group)
    return list({status.cell.digest: status for status in every}.values())


def print_status(plan: Plan) -> None:
    """Print a line for each experiment, figures drawn from records that are gone, the cells that
    are under way, jobs that SLURM holds, the time left, released runs, and failures."""
    slurm_logs = find_slurm_logs()
    by_experiment = statuses(plan, slurm_logs)
    cells = unique_cells(by_experiment)
    for line in _count_table(by_experiment):
        print(line)
    for (study, experiment), group in by_experiment.items():
        missing = sum(not status.is_finished for status in runnable_cells(group))
        drawn = _drawn_items(plan, plan.study(study), experiment)
        if drawn and missing:
            was, its = ("was", "its") if len(drawn) == 1 else ("were", "their")
            sentence = f"{', '.join(drawn)} {was} drawn, but {missing} of {its} records are missing"
            print(prose(f"  {sentence}: run snakemake again"))
    for state in ("running", "stopped"):
        here = [status for status in cells if status.state == state]
        for status in here[:MOST_LISTED]:
            print(paint(under_way_line(status), state))
        if len(here) > MOST_LISTED:
            print(f"{state}: {len(here) - MOST_LISTED} more (--json lists all)")
    for job in held_jobs():
        print(job)
    if restored := sum(status.restored for status in cells):
        print(f"restored from releases, not trained here: {restored}")
    unfinished = [status.cell for status in cells if not status.is_finished]
    for line in [*time_left_lines(plan, cells), *released_lines(plan, unfinished)]:
        print(line)
    for note in [*plan.notes, *changed_sentences(cells)]:
        print(prose(note))
    for status in cells:
        if status.state == "failed":
            print("\n" + paint(failure_text(status, slurm_logs), "failed"))


def summarize(plan: Plan) -> dict[str, Any]:
    """For JSON: counts of cells by state and of restored ones, every unfinished cell, held jobs,
    hours left, notes, and the cells that own files made in another version."""
    by_experiment = statuses(plan, find_slurm_logs())
    cells = unique_cells(by_experiment)
    counted = []
    for (study, experiment), group in by_experiment.items():
        counts = _count_by_state(group)
        states = {state: counts[state] for state in STATES}
        counted.append({"study": study, "experiment": experiment, "cells": len(group)} | states)
    return {
        "scale": plan.scale,
        "experiments": counted,
        "restored": sum(status.restored for status in cells),
        "unfinished": [_entry(status) for status in cells if not status.is_finished],
        "held_jobs": [asdict(job) for job in held_jobs()],
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


def under_way_line(status: CellStatus) -> str:
    """A line on a cell that has begun: `running 12/400 3.2 rounds/s cifar10/...`."""
    rate = f"{status.rate:.3g} rounds/s  " if status.rate else ""
    text = f"{status.state} {status.round}/{status.rounds}  {rate}"
    return text + shortened(cell_name(status), WIDTH - len(text))


def time_left_lines(plan: Plan, cells: Iterable[CellStatus]) -> Iterator[str]:
    """Yield a line on the time left at the pace of finished cells, one for each kind of device, or
    as estimated if none has finished here."""
    estimated = hours_left(plan, runnable_cells(cells))
    measured = {device: hours for device, hours in estimated.items() if device}
    for device, hours in (measured or estimated).items():
        pace = f"at the pace of the cells done on {device}" if device else "of one CPU core"
        if hours:
            yield f"left: about {duration_text(3600 * hours)} {pace}"


def _count_table(by_experiment: Statuses) -> Iterator[str]:
    """Yield the lines of a table: one for each experiment, a column for each state that occurs."""
    counts = {name: _count_by_state(group) for name, group in by_experiment.items()}
    occurring = {*ALWAYS, *(status.state for status in unique_cells(by_experiment))}
    states = [state for state in STATES if state in occurring]
    rows = []
    for (study, experiment), count in counts.items():
        share = (count["done"] + count["diverged"]) / count.total()
        bars = [bar(share)] if is_terminal() else []
        rows.append([f"{study}.{experiment}", *(count[state] for state in states), *bars])
    bars = [""] if is_terminal() else []
    yield from table(["experiment", *states, *bars], rows, ["", *states, *("done" for _ in bars)])


def _count_by_state(cells: Iterable[CellStatus]) -> Counter[str]:
    return Counter(status.state for status in cells)


def _entry(status: CellStatus) -> dict[str, Any]:
    return {
        "digest": status.cell.digest,
        "path": status.cell.path,
        "state": status.state,
        "round": status.round,
        "rounds": status.rounds,
        "reason": status.reason,
    }


def _drawn_items(plan: Plan, study: Study, experiment: str) -> list[str]:
    """The figures, tables and claims that show an experiment and whose files exist."""
    names = [
        name
        for name, spec in study.drawn_items().items()
        if spec["experiment"] == experiment and not needs_no_runs(spec)
    ]
    if experiment in study.claimed():
        names.append(CLAIMS_TABLE)
    return [name for name in names if _all_exist(output_files(plan, study, name))]


def _all_exist(files: Iterable[str]) -> bool:
    return all(Path(file).exists() for file in files)
