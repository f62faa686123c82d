"""`cohort watch`: the cells that are running, with their rates and the time left."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from cohort.commands.planning import add_studies, load_plan
from cohort.commands.screen import WIDTH, bar, is_terminal, paint, sparkline, table
from cohort.commands.status import cell_name, runnable_cells, statuses, unique_cells
from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.core.text import duration_text
from cohort.pipeline.cell_states import (
    STATES,
    CellStatus,
    estimated_seconds,
    find_slurm_logs,
    hours_left,
    logged_accuracies,
)
from cohort.plan import Plan

if TYPE_CHECKING:
    from rich import live, text
else:  # only in a terminal
    live, text = lazy("rich.live"), lazy("rich.text")

MOST_LISTED = 30  # running cells


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the studies, and how often to look."""
    add_studies(parser)
    parser.add_argument(
        "--every", type=float, default=2.0, metavar="SECONDS", help="look this often (2)"
    )


def run(options: argparse.Namespace) -> None:
    """Follow the cells until all are done: as a view in a terminal, else by a line per change."""
    if not options.every > 0:
        raise UserError(f"--every is {options.every}, but must be above 0 seconds")
    plan = load_plan(options)
    with contextlib.suppress(KeyboardInterrupt):
        if is_terminal():
            with live.Live(auto_refresh=False) as screen:
                for cells in snapshots(plan, options.every):
                    view = "\n".join(summary_lines(plan, cells))
                    screen.update(text.Text.from_ansi(view), refresh=True)
        else:
            for line in change_lines(snapshots(plan, options.every)):
                print(line, flush=True)


def snapshots(plan: Plan, every: float) -> Iterator[list[CellStatus]]:
    """Yield all cells' states every so many seconds until all that can be run here are done."""
    finished: dict[str, CellStatus] = {}
    while True:
        cells = unique_cells(statuses(plan, find_slurm_logs(), finished))
        yield cells
        if all(status.is_finished for status in runnable_cells(cells)):
            return
        finished = {status.cell.digest: status for status in cells if status.is_finished}
        time.sleep(every)


def summary_lines(plan: Plan, cells: list[CellStatus]) -> Iterator[str]:
    """Yield lines: how many cells are in each state, a bar, each running cell, the time left."""
    counts = Counter(status.state for status in cells)
    done = sum(status.is_finished for status in cells)
    yield ", ".join(paint(f"{counts[state]} {state}", state) for state in STATES if counts[state])
    yield paint(bar(done / len(cells) if cells else 1.0, WIDTH), "done")
    running = [status for status in cells if status.state == "running"]
    rows = [_row(status) for status in running[:MOST_LISTED]]
    if rows:
        yield from table(("running", "test accuracy", "", "round", "rounds/s", "left"), rows)
    if more := running[MOST_LISTED:]:
        yield f"and {len(more)} more"
    if running:
        left = duration_text(seconds_left(plan, cells))
        yield f"all cells: about {left} at {len(running)} side by side"


def seconds_left(plan: Plan, cells: list[CellStatus]) -> float:
    """Estimate the seconds until all cells are done, with as many side by side as now, as fast."""
    running = [status for status in cells if status.state == "running"]
    paced = [status for status in running if status.rate]
    taken = sum(status.rounds / status.rate for status in paced)
    estimated = sum(estimated_seconds(plan, status.cell) for status in paced)
    pace = taken / estimated if estimated else 1.0
    return 3600 * hours_left(plan, runnable_cells(cells))[""] * pace / max(1, len(running))


def _row(status: CellStatus) -> tuple[str, ...]:
    left = duration_text((status.rounds - status.round) / status.rate) if status.rate else ""
    rate = f"{status.rate:.3g}" if status.rate else ""
    curve = [point for point in logged_accuracies(status.cell) if point[0] <= status.round]
    shown = sparkline(curve, status.rounds) if curve else bar(status.round / status.rounds)
    last = f"{100 * curve[-1][1]:.1f} %" if curve else ""
    return cell_name(status), shown, last, f"{status.round}/{status.rounds}", rate, left


def change_lines(snapshots: Iterator[list[CellStatus]]) -> Iterator[str]:
    """Yield a line on all cells, then one for each cell that changes its state."""
    before: dict[str, str] = {}
    for cells in snapshots:
        now = {status.cell.digest: status.state for status in cells}
        done, at = sum(status.is_finished for status in cells), datetime.now()
        if not before:
            yield f"{at:%H:%M:%S}  {done} of {len(cells)} cells are done"
        for status in cells if before else ():
            if before[status.cell.digest] != status.state:
                where = f" at {status.round}/{status.rounds}" if status.round else ""
                yield (
                    f"{at:%H:%M:%S}  {status.state}{where}  {cell_name(status)}  "
                    f"({done} of {len(cells)} done)"
                )
        before = now
