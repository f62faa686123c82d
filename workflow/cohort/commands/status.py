"""Where things stand: `cohort status` counts cells by state and says what the missing ones cost;
`cohort show` prints what stands behind a figure, a table or a record."""

import argparse
import contextlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cohort.commands import shared
from cohort.commands.run import check_cell_text, find_cell
from cohort.core import UserError, check_allowed, counted, duration_text, lazy, user_files
from cohort.core.paths import CELLS
from cohort.pipeline import cell_states, slurm, stages
from cohort.pipeline.cell_states import STATES, CellStatus
from cohort.plan import Plan, all_studies, cost, require_study
from cohort.records.record import Record, read
from cohort.results.release.folder import read_digests, release_folders
from cohort.results.series import FULL
from cohort.training.cell import Cell

if TYPE_CHECKING:
    from cohort.results import collect
else:  # it imports pandas
    collect = lazy("cohort.results.collect")

Statuses = dict[tuple[str, str], list[CellStatus]]
"""The states of the cells of each experiment, by study and experiment."""

ALWAYS = ("done", "missing")  # the states that have a column even if no cell is in them
MAX_LISTED = 20  # cells of a state
OTHER_DATA = "the settings of the cell, but data of another checksum or scaling"
MAX_OTHER_RECORDS = 5  # in the same folder, compared with the cell


def status_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_studies(parser)
    text = "estimate the time of the missing cells, and the jobs that a cluster sees"
    parser.add_argument("--cost", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def status_command(options: argparse.Namespace) -> None:
    """Print the status of the studies, or their cost."""
    plan = shared.load_plan(options)
    by_experiment = statuses(plan)
    if options.cost:
        costs = summarize_cost(plan, by_experiment)
        shared.report(cost_lines(costs), lambda: costs, as_json=options.json)
    else:
        lines = status_lines(plan, by_experiment)
        shared.report(lines, lambda: summarize(plan, by_experiment), as_json=options.json)


def statuses(plan: Plan) -> Statuses:
    """Read the states of all cells of the listed studies, with those that cannot be run here."""
    rows, slurm_logs = plan.rows(plan.listed), cell_states.find_slurm_logs()
    skipped = ((study, name) for study in plan.listed for name in plan.study(study).skipped)
    digests = dict.fromkeys(row.digest for group in rows.values() for row in group)
    by_digest = {key: cell_states.status_of(plan.cells[key], slurm_logs) for key in digests}
    by_experiment = {}
    for key in dict.fromkeys([*rows, *skipped]):
        by_experiment[key] = [by_digest[row.digest] for row in rows.get(key, [])] + [
            CellStatus(plan.cells[row.digest], "waiting", reason=reason)
            for row, reason in plan.skipped(*key)
        ]
    return {key: cells for key, cells in by_experiment.items() if cells}


def unique_cells(by_experiment: Statuses) -> list[CellStatus]:
    """The statuses of all experiments, each cell once even if several share it."""
    all_cells = (status for group in by_experiment.values() for status in group)
    return list({status.cell.digest: status for status in all_cells}.values())


def status_lines(plan: Plan, by_experiment: Statuses) -> Iterator[str]:
    """Yield a table of cells by state, then lines on those under way, held, released or failed."""
    cells = unique_cells(by_experiment)
    occurring = {*ALWAYS, *(status.state for status in cells)}
    states = [state for state in STATES if state in occurring]
    rows = []
    for (study, experiment), group in by_experiment.items():
        count = Counter(status.state for status in group)
        rows.append([f"{study}.{experiment}", *(count[state] for state in states)])
    yield from shared.table(["experiment", *states], rows)
    for state in ("running", "stopped"):
        here = [status for status in cells if status.state == state]
        for status in here[:MAX_LISTED]:
            rate = f"{status.rate:.3g} rounds/s  " if status.rate else ""
            prefix = f"{state} {status.round}/{status.cell.settings.rounds}  {rate}"
            name = status.cell.path.removeprefix(f"{CELLS}/").removesuffix(".h5")
            yield shared.paint(prefix + shared.shortened(name, shared.WIDTH - len(prefix)), state)
        if len(here) > MAX_LISTED:
            yield f"{state}: {len(here) - MAX_LISTED} more (--json lists all)"
    yield from map(str, slurm.held_jobs())
    if restored := sum(status.restored for status in cells):
        yield f"restored from releases, not trained here: {restored}"
    yield from time_left_lines(plan, cells)
    yield from released_lines(plan, [status.cell for status in cells if not status.is_finished])
    changed = user_files.changed_sentences(status.changed for status in cells)
    yield from map(shared.prose, [*plan.notes, *changed])
    slurm_logs = cell_states.find_slurm_logs()
    for status in cells:
        if status.state == "failed":
            yield "\n" + shared.paint(cell_states.failure_text(status, slurm_logs), "failed")


def summarize(plan: Plan, by_experiment: Statuses) -> dict[str, Any]:
    """For JSON: counts of cells by state, each unfinished cell, held jobs, hours left, notes."""
    cells = unique_cells(by_experiment)
    experiments = []
    for (study, experiment), group in by_experiment.items():
        counts = dict.fromkeys(STATES, 0) | Counter(status.state for status in group)
        experiments.append({"study": study, "experiment": experiment, "cells": len(group)} | counts)
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "restored": sum(status.restored for status in cells),
        "unfinished": [
            {"digest": status.cell.digest, "path": status.cell.path}
            | {"rounds": status.cell.settings.rounds, "state": status.state}
            | {"round": status.round, "reason": status.reason}
            for status in cells
            if not status.is_finished
        ],
        "held_jobs": [job._asdict() for job in slurm.held_jobs()],
        "hours_left": cell_states.hours_left(plan, cells),
        "notes": plan.notes,
        "made_by_another": {status.cell.path: status.changed for status in cells if status.changed},
    }


def time_left_lines(plan: Plan, cells: Iterable[CellStatus]) -> Iterator[str]:
    """Yield the time left, at the pace of each device's finished cells or else as estimated."""
    estimated = cell_states.hours_left(plan, cells)
    measured = {device: hours for device, hours in estimated.items() if device}
    for device, hours in (measured or estimated).items():
        if hours:
            pace = f"at the pace of the cells done on {device}" if device else "of one CPU core"
            yield f"left: about {duration_text(3600 * hours)} {pace}"


def summarize_cost(plan: Plan, by_experiment: Statuses) -> dict[str, Any]:
    """For JSON, the cost of each experiment and of all missing cells that can run here. `jobs` has
    a number of jobs with the megabytes and minutes that each of them requests."""
    experiments, longest = [], plan.config.get("max_runtime", cost.MAX_RUNTIME)
    for (study, name), group in by_experiment.items():
        available = [status for status in group if status.state != "waiting"]
        missing = [status.cell for status in available if not status.is_finished]
        jobs = Counter(
            cost.resource_request(cell, plan.dataset_info(cell), longest=longest)
            for cell in missing
        )
        requested = [(count, *request) for request, count in sorted(jobs.items())]
        counts = {"cells": len(available), "missing": len(missing), "jobs": requested}
        hours = {"core_hours": cell_states.core_hours(plan, missing)}
        experiments.append({"study": study, "experiment": name} | counts | hours)
    cells = [status for status in unique_cells(by_experiment) if status.state != "waiting"]
    missing = [status.cell for status in cells if not status.is_finished]
    return {
        "scale": plan.scale,
        "experiments": experiments,
        "notes": [*plan.notes, *released_lines(plan, missing)],
        "missing": len(missing),
        "core_hours": cell_states.core_hours(plan, missing),
        "hours_left": cell_states.hours_left(plan, cells),
    }


def cost_lines(costs: Mapping[str, Any]) -> Iterator[str]:
    """Yield each experiment's missing cells, their estimated time and the jobs they request."""
    rows = []
    for experiment in costs["experiments"]:
        name, hours = f"{experiment['study']}.{experiment['experiment']}", experiment["core_hours"]
        rows.append((name, experiment["cells"], experiment["missing"], duration_text(3600 * hours)))
    titles, *lines = shared.table(("experiment", "cells", "missing", "one core"), rows)
    yield titles
    for line, experiment in zip(lines, costs["experiments"], strict=True):
        yield line
        for count, megabytes, minutes in experiment["jobs"]:
            request = f"{megabytes} MB and {minutes} minutes on a cluster"
            yield f"  {counted(count, 'job')} of {request}"
    yield from map(shared.prose, costs["notes"])
    time = duration_text(3600 * costs["core_hours"])
    yield shared.prose(f"{counted(costs['missing'], 'missing cell')}: about {time} of one CPU core")
    for device, hours in costs["hours_left"].items():
        if device and hours:
            pace = f"at the pace of the cells done on {device}"
            yield shared.prose(f"or {duration_text(3600 * hours)} {pace}")


def released_lines(plan: Plan, missing: Iterable[Cell]) -> Iterator[str]:
    """Yield a line on how many missing cells are released here, if any, and how to take them."""
    digests = {cell.digest for cell in missing}
    released = dict[str, set[str]]()
    folders = release_folders(all_studies()) if digests else {}
    for study, folder in folders.items():
        with contextlib.suppress(UserError):  # it is damaged, as `cohort restore` says
            released[study] = digests.intersection(read_digests(folder))
    if count := len(set().union(*released.values())):
        command = " ".join(["cohort restore", *(study for study in released if released[study])])
        command += "" if plan.scale == FULL else f" --scale {plan.scale}"
        command += f" --seeds {seeds}" if (seeds := plan.config.get("seeds")) else ""
        verb = "is" if count == 1 else "are"
        yield f"{count:,} of {len(digests):,} missing cells {verb} released: {command}"


class PlannedItem(NamedTuple):
    """A figure or table of a study, planned with these KEY=VALUE texts for the config."""

    plan: Plan
    study: str
    name: str
    config: Sequence[str] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The study's entry of the figure or table."""
        return self.plan.study(self.study).drawn_items()[self.name]

    @property
    def command(self) -> str:
        """The Snakemake command that rebuilds this item; empty if its study has no file."""
        if self.study not in all_studies():
            return ""
        kept = [text for text in self.config if not text.startswith("scale=")]
        config = ["--config", f"scale={self.plan.scale}", *kept]
        return shlex.join(["snakemake", f"{self.study}_{self.name}", *config])

    def statuses(self) -> list[CellStatus]:
        """The states of the cells that the item shows, of those that can be run here."""
        logs = cell_states.find_slurm_logs()
        rows = self.plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [cell_states.status_of(self.plan.cells[row.digest], logs) for row in rows]


def find_item(
    text: str, options: argparse.Namespace, study: str = "", content: dict[str, Any] | None = None
) -> PlannedItem:
    """Find the figure or table `STUDY.NAME` in the plan of these options, or `NAME` in a `study` of
    this content instead. Raise UserError if there is none."""
    named, _, name = text.partition(".")
    plan = shared.load_plan(options, studies=require_study(named))
    if content:
        plan.add(study, content)
    item = PlannedItem(plan, study or named, name, shared.config_texts(options))
    expanded = plan.study(item.study)
    if name not in (items := expanded.drawn_items()):
        for note in expanded.notes:
            if re.search(rf"\b{re.escape(name)}(, \w+)* cannot be drawn", note):
                raise UserError(f"'{text}' waits: {note}")
    check_allowed(name, items, f"'{text}': {named} has no figure or table '{name}'")
    return item


def show_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a figure or table, e.g. fedentopt.tab1, or a cell: its record's path, or its digest"
    parser.add_argument("what", metavar="WHAT", help=text)
    shared.add_config(parser, "scale", "seeds")


def show_command(options: argparse.Namespace) -> None:
    """Print what stands behind a figure or table, or a record and the state of its cell."""
    text = options.what
    if "." in text and "/" not in text and not text.endswith(".h5"):
        print(*item_lines(find_item(text, options)), sep="\n")
        return
    check_cell_text(text)
    named = [Path(text)] if text.endswith(".h5") else Path(CELLS).rglob(f"seed*-{text}*.h5")
    files = [file for file in named if file.exists()]
    if len(files) > 1:
        raise UserError(f"'{text}' is the beginning of {len(files)} digests; give more of it")
    for file in files:
        print(*_record_lines(read(file)), sep="\n", flush=True)
    plan = shared.load_plan(options)
    if cell := find_cell(plan, str(files[0]) if files else text):
        print(*_cell_lines(plan, cell), sep="\n")
    elif files:
        print(f"{files[0]}: no study has this cell at scale {plan.scale} (see cohort prune)")
    else:
        where = f"no study has it at scale {plan.scale}"
        raise UserError(f"there is no record of a cell '{text}', and {where}")


def item_lines(item: PlannedItem) -> Iterator[str]:
    """Yield lines on a figure or table: its files, cells, time left and command."""
    plan, spec, cells = item.plan, item.spec, item.statuses()
    yield f"{item.study}.{item.name} at scale {plan.scale}: {spec.get('title') or 'no title'}"
    for file in stages.output_files(plan.layout, plan.study(item.study), item.name):
        missing = "" if Path(file).exists() else shared.paint("(not drawn yet)", "missing")
        yield f"  {file}  {missing}".rstrip()
    counts = Counter(status.state for status in cells)
    states = (f"{counts[state]} {state}" for state in STATES if counts[state])
    yield f"{counted(len(cells), 'cell')} of {spec['experiment']}: {', '.join(states)}"
    unfinished = [status.cell for status in cells if not status.is_finished]
    for name, count in sorted(Counter(cell.settings.strategy for cell in unfinished).items()):
        yield f"  {name}: {count} missing"
    yield from plan.study(item.study).notes
    yield from time_left_lines(plan, cells)
    yield from released_lines(plan, unfinished)
    if item.command:
        yield f"$ {item.command}"


def _record_lines(record: Record) -> Iterator[str]:
    """Yield a record's header with its settings, summaries of its metrics, and what was sent."""
    yield json.dumps(record.header, indent=1)
    rows = []
    for name, pairs in (record.history.metrics | record.history.cost).items():
        values = np.array(pairs)[:, 1]
        numbers = (f"{value:.6g}" for value in (values[-1], values.min(), values.max()))
        rows.append((name, len(values), *numbers))
    yield from shared.table(("metric", "values", "last", "lowest", "highest"), rows)
    for name, sizes in record.history.traffic.items():
        up, down, between = sizes / 1e6
        yield f"{name:18} sent in MB: {up:.6g} up, {down:.6g} down, {between:.6g} between clients"


def _cell_lines(plan: Plan, cell: Cell) -> Iterator[str]:
    """Yield a cell's state and, if it is not done, how other records in its folder differ."""
    state = cell_states.status_of(cell, cell_states.find_slurm_logs())
    here = f"round {state.round} of {cell.settings.rounds}"
    skipped = (rows for study in plan.studies.values() for rows in study.skipped.values())
    lacks = [why for rows in skipped for row, why in rows if row.digest == cell.digest]
    sentences = {
        "done": "it is done",
        "diverged": "it is done, and diverged",
        "running": f"it is being trained, at {here}",
        "stopped": f"its record is missing; it stopped at {here} and resumes there",
        "failed": f"its record is missing; its last job failed: {state.reason or 'no log'}",
        "missing": "its record is missing",
    }
    waits = f"its record is missing, but it waits: {lacks[0]}" if lacks else ""
    yield f"{cell.path}: {waits or sentences[state.state]}"
    yield from user_files.changed_sentences([state.changed])
    if state.is_finished:
        return
    folder, prefix = Path(cell.path).parent, f"seed{cell.settings.seed}-"
    others = sorted(set(folder.glob("seed*.h5")) - {Path(cell.path)})
    same_seed = [file for file in others if file.name.startswith(prefix)]
    for file in (same_seed or others)[:MAX_OTHER_RECORDS]:
        try:
            differences = [*collect.differences_from(read(file), cell)] or [OTHER_DATA]
            yield from (f"  {file.name} has {difference}" for difference in differences)
        except UserError as error:
            yield f"  {error}"
    if not others:
        yield f"  there is no other record in {folder}"
