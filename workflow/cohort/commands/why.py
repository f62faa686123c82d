"""`cohort why`: what would make a cell train."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cohort.commands.planning import add_config, load_plan
from cohort.commands.run import check_cell_text, find_cell
from cohort.commands.show import find_record
from cohort.core.errors import UserError
from cohort.core.paths import records_in
from cohort.pipeline.cell_states import CellStatus, changed_sentences, find_slurm_logs, status_of
from cohort.plan import Plan
from cohort.records.record import Record, read
from cohort.results.differences import settings_with_defaults
from cohort.training.cell import Cell

MOST_RECORDS = 5  # other records of a folder that are held against the cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cell."""
    add_config(parser)
    parser.add_argument(
        "cell", metavar="CELL", help="the path of a record, a digest or the beginning of one"
    )


def run(options: argparse.Namespace) -> None:
    """Print why the cell would be trained, or that it would not."""
    check_cell_text(options.cell, study="cohort status {}", item="cohort show {}")
    plan = load_plan(options)
    cell = find_cell(plan, options.cell)
    lines = _explain_cell(plan, cell) if cell else _explain_record(plan, options.cell)
    for line in lines:
        print(line)


def _explain_cell(plan: Plan, cell: Cell) -> Iterator[str]:
    """Describe the cell's state and, if not done, how other records in its folder differ from
    it."""
    status = status_of(cell, find_slurm_logs())
    yield f"{cell.path}: {_sentence(status, _hindrance(plan, cell))}"
    yield from changed_sentences([status])
    if status.is_finished:
        return
    folder, own = Path(cell.path).parent, f"seed{cell.settings.seed}-"
    others = [file for file in records_in(folder) if file != Path(cell.path)]
    same_seed = [file for file in others if file.name.startswith(own)]
    for file in (same_seed or others)[:MOST_RECORDS]:
        try:
            neighbor = read(file)
        except UserError as error:
            yield f"  {error}"
            continue
        for difference in differences_from(neighbor, cell):
            yield f"  {file.name} has {difference}"
    if not others:
        yield f"  there is no other record in {folder}"


def _explain_record(plan: Plan, text: str) -> Iterator[str]:
    """Explain that no study has the cell of this record, and how it differs from the cells that
    came in its place. Raise UserError if there is no such record."""
    file = find_record(text)
    record = read(file)
    yield (
        f"{file}: nothing would: no study has this cell at scale {plan.scale} "
        "(cohort prune lists those that none has at any)"
    )
    seed = record.header["settings"]["seed"]
    for cell in plan.cells.values():
        is_neighbor = Path(cell.path).parent == file.parent and cell.settings.seed == seed
        for difference in differences_from(record, cell) if is_neighbor else ():
            yield f"  it has {difference}, {cell.digest}"


def _hindrance(plan: Plan, cell: Cell) -> str:
    """The reason why the cell cannot be trained here; empty if it can."""
    for study in plan.studies.values():
        for rows in study.skipped.values():
            for row, reason in rows:
                if row.digest == cell.digest:
                    return reason
    return ""


def _sentence(status: CellStatus, hindrance: str) -> str:
    """A sentence on what the state of a cell means for its training."""
    here = f"round {status.round} of {status.rounds}"
    if hindrance:
        return f"its record is missing, but it waits: {hindrance}"
    if status.state == "failed" and Path(status.cell.path).exists():
        return f"its record cannot be used: {status.reason}"
    return {
        "done": "nothing: it is done",
        "diverged": "nothing: it is done, and diverged",
        "running": f"it is being trained, at {here}",
        "stopped": f"its record is missing; it stopped at {here} and resumes there",
        "failed": f"its record is missing; its last job failed: {status.reason or 'no log'}",
        "missing": "its record is missing",
    }[status.state]


def differences_from(record: Record, cell: Cell) -> Iterator[str]:
    """Describe how a record differs from a cell: settings, parameters, science versions."""
    there = flat_settings(settings_with_defaults(record.header["settings"]))
    here, science = flat_settings(cell.plain_settings()), record.header["science"]
    keys = [key for key in dict.fromkeys([*there, *here]) if there.get(key) != here.get(key)]
    for key in keys:
        yield f"{key} {there.get(key, 'unset')}, the cell {here.get(key, 'unset')}"
    bumped = [key for key in science if science[key] != cell.science.get(key, science[key])]
    for key in bumped:
        yield f"science version {science[key]} of {key}, the cell {cell.science[key]}"
    if not keys and not bumped:
        yield "the settings of the cell, but data of another checksum or scaling"


def flat_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten settings: parameters of a strategy's parts become keys like `selector.buffer`."""
    by_name: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            by_name |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            by_name[key] = value
    return by_name
