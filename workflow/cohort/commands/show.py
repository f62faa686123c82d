"""`cohort show`: what stands behind a figure or table, or what a record holds and why its cell
would be trained."""

import argparse
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cohort.commands.run import check_cell_text, find_cell
from cohort.commands.shared import add_config, config_texts, load_plan, paint, table
from cohort.core.errors import UserError, suggest
from cohort.core.files import relative_path
from cohort.core.lazy import lazy
from cohort.core.paths import records_in, records_matching
from cohort.core.text import counted
from cohort.records.record import Record, read

if TYPE_CHECKING:
    from cohort import plan as planning
    from cohort.commands import status
    from cohort.pipeline import cell_states, stages
    from cohort.plan import Plan
    from cohort.results import collect
    from cohort.training.cell import Cell
else:  # `cohort show --help` plans nothing
    planning, status = lazy("cohort.plan"), lazy("cohort.commands.status")
    cell_states, stages = lazy("cohort.pipeline.cell_states"), lazy("cohort.pipeline.stages")
    collect = lazy("cohort.results.collect")

MOST_RECORDS = 5  # other records of a folder that are held against the cell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to show, and the options that plan it."""
    text = "a figure or table, e.g. fedentopt.tab1, or a cell: its record's path, or its digest"
    parser.add_argument("what", metavar="WHAT", help=text)
    add_config(parser)


class Item(NamedTuple):
    """A figure or table of a study, planned with these KEY=VALUE texts for the config."""

    plan: "Plan"
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
        if self.study not in planning.all_studies():
            return ""
        others = [text for text in self.config if not text.startswith("scale=")]
        config = ["--config", f"scale={self.plan.scale}", *others]
        return shlex.join(["snakemake", f"{self.study}_{self.name}", *config])

    def cells(self) -> "list[cell_states.CellStatus]":
        """The states of the cells that the item shows, of those that can be run here."""
        logs = cell_states.find_slurm_logs()
        rows = self.plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [cell_states.status_of(self.plan.cells[row.digest], logs) for row in rows]


def find_item(
    text: str, options: argparse.Namespace, study: str = "", content: dict[str, Any] | None = None
) -> Item:
    """Find the figure or table `STUDY.NAME` in the plan of these options, or `NAME` in `study`
    instead, which has this content. Raise UserError if there is none."""
    named, _, name = text.partition(".")
    plan = load_plan(options, studies=planning.require_study(named))
    if content:
        plan.add(study, content)
    item = Item(plan, study or named, name, config_texts(options))
    expanded = plan.study(item.study)
    if name not in (drawn := expanded.drawn_items()):
        for note in expanded.notes:
            if re.search(rf"[(, ]{re.escape(name)}[, ].*cannot be drawn", note):
                raise UserError(f"'{text}' waits: {note}")
        raise UserError(f"'{text}': {named} has no figure or table '{name}'{suggest(name, drawn)}")
    return item


def run(options: argparse.Namespace) -> None:
    """Print what stands behind a figure or table, or a record and the state of its cell."""
    text = options.what
    if "." in text and "/" not in text and not text.endswith(".h5"):
        print(*_item_lines(find_item(text, options)), sep="\n")
        return
    check_cell_text(text)
    file = find_record(text)
    if file:
        print(*_record_lines(read(file)), sep="\n", flush=True)
    plan = load_plan(options)
    if cell := find_cell(plan, str(file) if file else text):
        print(*_cell_lines(plan, cell), sep="\n")
    elif file:
        print(f"{file}: no study has this cell at scale {plan.scale} (see cohort prune)")
    else:
        where = f"no study has it at scale {plan.scale}"
        hint = "give the path of a record, or its digest"
        raise UserError(f"there is no record of a cell '{text}', and {where}; {hint}")


def _item_lines(item: Item) -> Iterator[str]:
    """Yield lines on a figure or table: its files, cells, time left and command."""
    plan, spec, cells = item.plan, item.spec, item.cells()
    yield f"{item.study}.{item.name} at scale {plan.scale}: {spec.get('title') or 'no title'}"
    for file in stages.output_files(plan, plan.study(item.study), item.name):
        missing = "" if Path(file).exists() else paint("(not drawn yet)", "missing")
        yield f"  {file}  {missing}".rstrip()
    counts = Counter(cell.state for cell in cells)
    states = (f"{counts[state]} {state}" for state in cell_states.STATES if counts[state])
    yield f"{counted(len(cells), 'cell')} of {spec['experiment']}: {', '.join(states)}"
    yield from status.time_left_lines(plan, cells)
    yield from status.released_lines(plan, [cell.cell for cell in cells if not cell.is_finished])
    yield f"$ {item.command}"


def _record_lines(record: Record) -> Iterator[str]:
    """Yield a record's header with its settings, summaries of its metrics, and what was sent."""
    yield json.dumps(record.header, indent=1)
    rows = []
    for name, pairs in (record.history.metrics | record.history.cost).items():
        values = np.array(pairs)[:, 1]
        numbers = (f"{value:.6g}" for value in (values[-1], values.min(), values.max()))
        rows.append((name, len(values), *numbers))
    yield from table(("metric", "values", "last", "lowest", "highest"), rows)
    for what, sizes in record.history.traffic.items():
        up, down, between = sizes / 1e6
        yield f"{what:18} sent in MB: {up:.6g} up, {down:.6g} down, {between:.6g} between clients"


def find_record(text: str) -> Path | None:
    """The path of the record with this path or this beginning of a digest; None if no digest
    begins so. Raise UserError if several do."""
    if "/" in text or text.endswith(".h5"):
        file = Path(relative_path(text))
        return file if file.exists() else None
    matches = records_matching(text)
    if len(matches) > 1:
        raise UserError(f"'{text}' is the beginning of {len(matches)} digests; give more of it")
    return matches[0] if matches else None


def _cell_lines(plan: "Plan", cell: "Cell") -> Iterator[str]:
    """Yield the state of a cell and, if it is not done, how other records in its folder differ
    from it."""
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
    yield from cell_states.changed_sentences([state])
    if state.is_finished:
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


def differences_from(record: Record, cell: "Cell") -> Iterator[str]:
    """Describe how a record differs from a cell: settings, parameters, science versions."""
    there = _flat(collect.settings_with_defaults(record.header["settings"]))
    here, science = _flat(cell.plain_settings()), record.header["science"]
    keys = [key for key in dict.fromkeys([*there, *here]) if there.get(key) != here.get(key)]
    for key in keys:
        yield f"{key} {there.get(key, 'unset')}, the cell {here.get(key, 'unset')}"
    bumped = [key for key in science if science[key] != cell.science.get(key, science[key])]
    for key in bumped:
        yield f"science version {science[key]} of {key}, the cell {cell.science[key]}"
    if not keys and not bumped:
        yield "the settings of the cell, but data of another checksum or scaling"


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with parameters of a strategy's parts under keys like `selector.buffer`."""
    by_name: dict[str, Any] = {}
    for key, value in settings.items():
        parameters = value.items() if isinstance(value, dict) else ()
        by_name |= {f"{key}.{name}": inner for name, inner in parameters} or {key: value}
    return by_name
