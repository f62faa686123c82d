"""`cohort show STUDY.NAME`: the files, cells, cost and command of a figure or table."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from cohort.commands.cost import released_lines
from cohort.commands.item import Item, find_item
from cohort.commands.screen import paint, print_json
from cohort.commands.status import time_left_lines
from cohort.core.text import counted
from cohort.pipeline.cell_states import STATES, CellStatus, hours_left
from cohort.pipeline.stages import output_files
from cohort.results.tables.sizes import needs_no_runs


def print_item(text: str, options: argparse.Namespace) -> None:
    """Print what stands behind a figure or table: its files, cells, time left and command."""
    item = find_item(text, options, with_sizes=True)
    cells = [] if needs_no_runs(item.spec) else item.cells()
    if options.json:
        print_json(summarize(item, cells))
    else:
        _print(item, cells)


def summarize(item: Item, cells: list[CellStatus]) -> dict[str, Any]:
    """For JSON: a figure's or table's files, cells by state, hours left and command."""
    counts = Counter(status.state for status in cells)
    files = output_files(item.plan, item.plan.study(item.study), item.name)
    return {
        "study": item.study,
        "name": item.name,
        "scale": item.plan.scale,
        "title": item.spec.get("title", ""),
        "experiment": item.spec["experiment"],
        "files": {file: Path(file).exists() for file in files},
        "cells": len(cells),
        **{state: counts[state] for state in STATES if state != "waiting"},
        "hours_left": hours_left(item.plan, cells),
        "command": item.command,
    }


def _print(item: Item, cells: list[CellStatus]) -> None:
    summary = summarize(item, cells)
    title = summary["title"] or "no title"
    print(f"{item.study}.{item.name} at scale {summary['scale']}: {title}")
    for file, exists in summary["files"].items():
        state = "done" if exists else "missing"
        print(f"  {file}  {paint('' if exists else '(not drawn yet)', state)}".rstrip())
    if not cells:
        print("it needs no runs")
    else:
        missing = [status.cell for status in cells if not status.is_finished]
        states = (f"{summary[state]} {state}" for state in STATES if summary.get(state))
        print(f"{counted(len(cells), 'cell')} of {summary['experiment']}: {', '.join(states)}")
        for line in [*time_left_lines(item.plan, cells), *released_lines(item.plan, missing)]:
            print(line)
    print(f"$ {summary['command']}")
