"""What `cohort try` and `cohort reproduce` share: one figure or table, its cost, its run, and its
strategies side by side."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from cohort.commands.cost import total_lines
from cohort.commands.item_lines import result_lines, result_rows
from cohort.commands.planning import add_json, add_only, config_texts, load_plan
from cohort.commands.screen import print_json
from cohort.core.errors import UserError, suggest
from cohort.core.paths import state_folder
from cohort.core.text import counted
from cohort.pipeline import preview
from cohort.pipeline.cell_states import CellStatus, changed_sentences, find_slurm_logs, status_of
from cohort.pipeline.driver import lock_directory
from cohort.pipeline.specs import look_of
from cohort.pipeline.stages import output_files
from cohort.plan import Plan, all_studies, require_study
from cohort.results.comparison import Comparison
from cohort.results.names import Names
from cohort.results.tables.sizes import needs_no_runs
from cohort.training.cell import Cell


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --config and its like, whether to run, and --json."""
    add_only(parser)
    add_json(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what it would cost")


@dataclass(frozen=True)
class Item:
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
    def notes(self) -> list[str]:
        """Sentences on what was left out of the study."""
        return self.plan.study(self.study).notes

    @property
    def target(self) -> str:
        """The Snakemake target that makes this item."""
        return f"{self.study}_{self.name}"

    def cells(self) -> list[CellStatus]:
        """The states of the cells that the item shows, of those that can be run here."""
        logs, plan = find_slurm_logs(), self.plan
        rows = plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [status_of(plan.cells[row.digest], logs) for row in rows]

    @property
    def command(self) -> str:
        """The Snakemake command that rebuilds this item; empty if its study has no file."""
        if self.study not in all_studies():
            return ""
        others = [text for text in self.config if not text.startswith("scale=")]
        config = [f"scale={self.plan.scale}", *others]
        return shlex.join(["snakemake", self.target, "--config", *config])


def find_item(
    text: str,
    options: argparse.Namespace,
    study: str = "",
    content: dict[str, Any] | None = None,
    *,
    with_sizes: bool = False,
) -> Item:
    """Find the figure or table `STUDY.NAME` in the plan of these options, or `NAME` in `study`
    instead, which has this content. One that needs no runs is found only `with_sizes`. Raise
    UserError if there is none."""
    named, _, name = text.partition(".")
    plan = load_plan(options, studies=require_study(named))
    if content:
        plan.add(study, content)
    item = Item(plan, study or named, name, config_texts(options))
    drawn = plan.study(item.study).drawn_items()
    shown = [key for key, spec in drawn.items() if with_sizes or not needs_no_runs(spec)]
    for note in item.notes if name not in shown else ():
        if re.search(rf"[(, ]{re.escape(name)}[, ].*cannot be drawn", note):
            raise UserError(f"'{text}' waits: {note}")
    if name not in shown:
        raise UserError(f"'{text}': {named} has no figure or table '{name}'{suggest(name, shown)}")
    return item


def run_item(item: Item, options: argparse.Namespace, *, against: bool) -> Comparison | None:
    """Say which cells the item shows and what the missing ones cost, train them unless it is a dry
    run, print the item's lines, with the verdict against FedAvg or else against the paper, and
    return the comparison. With --json, print one document at the end instead.

    With --retrain, cells that the user's own files made in another version count as missing. Raise
    a UserError for a damaged record, with which nothing could be drawn.
    """
    cells = item.cells()
    for status in cells:
        if status.state == "failed" and Path(status.cell.path).exists():
            raise UserError(status.reason)
    again = [s for s in cells if s.changed] if getattr(options, "retrain", False) else []
    missing = [status.cell for status in cells if not status.is_finished or status in again]
    counts = sorted(Counter(cell.settings.strategy for cell in missing).items())
    for line in [] if options.json else _announced(item, len(cells), counts, missing, again):
        print(line, flush=True)
    comparison, files, is_complete = None, list[str](), False
    if not options.dry_run:
        discard_results(again)
        is_complete = _trained(item, output=sys.stderr if options.json else None)
        comparison, files = result_of(item, is_complete=is_complete)
    notes = [] if again and options.dry_run else changed_sentences(item.cells())
    if options.json:
        described = {"study": item.study, "name": item.name, "scale": item.plan.scale}
        described |= {"cells": len(cells), "missing": dict(counts), "command": item.command}
        described |= {"complete": is_complete, "notes": [*item.notes, *notes], "files": files}
        print_json(described | {"results": result_rows(comparison) if comparison else []})
        return comparison
    if comparison:
        lines = [] if is_complete else ["not all cells were trained; what exists is shown"]
        names = Names.of(look_of(item.plan, item.study, item.spec["experiment"]))
        lines += result_lines(comparison, names, against=against)
        notes = [*lines, "drawn: " + ", ".join(files), *notes]
    for line in notes:
        print(line)
    return comparison


def _announced(
    item: Item,
    cells: int,
    counts: Iterable[tuple[str, int]],
    missing: list[Cell],
    again: Sequence[CellStatus],
) -> Iterator[str]:
    """What an item shows, and what of it is missing."""
    where = f"{item.study}.{item.name} at scale {item.plan.scale}"
    yield f"{where}: {counted(cells, 'cell')} of {item.spec['experiment']}"
    for name, count in counts:
        yield f"  {name}: {count} {'to train' if again else 'missing'}"
    yield from item.notes
    yield from total_lines(item.plan, missing)
    if item.command:
        yield f"$ {item.command}"


def _trained(item: Item, output: TextIO | None) -> bool:
    """Train what is missing, with Snakemake's output to there; whether all went well."""
    command = [sys.executable, "-m", *shlex.split(item.command)]
    driver = subprocess.Popen(command, stdout=output)
    try:
        return driver.wait() == 0
    except KeyboardInterrupt:
        driver.wait()  # Ctrl-C reached it too: it saves its cells and ends
        raise


def discard_results(cells: Sequence[CellStatus]) -> None:
    """Delete the records and checkpoints of cells, so that these are trained from the beginning."""
    if not cells:
        return
    with lock_directory():  # no driver may be at work
        for status in cells:
            Path(status.cell.path).unlink(missing_ok=True)
            shutil.rmtree(state_folder(status.cell.path), ignore_errors=True)


def result_of(item: Item, *, is_complete: bool) -> tuple[Comparison, list[str]]:
    """Read the comparison of an item's runs, and list the files of its drawing; draw a preview
    where it was not drawn in full."""
    if item.plan.config.get("only") or not is_complete:
        files = preview.draw_item(item.plan, item.study, item.name)
    else:
        files = output_files(item.plan, item.plan.study(item.study), item.name)
    comparison = next(file for file in files if file.endswith(".json"))
    return Comparison.read(comparison), files
