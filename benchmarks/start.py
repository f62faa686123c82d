"""W5: how long a cell takes to begin."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from benchmarks.processes import Fresh
from benchmarks.project import add_study, copied, environment, planned
from benchmarks.sweeps import Summary, interleaved, times_faster
from benchmarks.tables import Goal, Section, number, seconds, table

SETTINGS = {
    "dataset": "digits",
    "model": "aml-lenet",
    "clients": 10,
    "cohort": 1,
    "rounds": 2,
    "batch": 64,
    "lr": 0.01,
    "evaluate_every": 2,
}
AXES = {"partition": ["iid"], "J": ["J1"], "strategy": ["fedavg"], "seed": [0]}
IMPORT, CELL, BY_NAME = (
    'python -c "import torch"',
    "a cell, from its plan file",
    "a cell by its digest, planned first",
)


def measure(rounds: int, folder: Path) -> Section:
    """Time whole processes: `import torch`, and a cell that stops once its first round is saved."""
    project = copied(folder)
    variants = {
        IMPORT: Fresh(
            [sys.executable, "-c", "import torch"], environment(project, os.environ), project
        ),
        **cells(project),
    }
    taken, failed = interleaved(variants, rounds)
    rows = [
        [
            name,
            *seconds(Summary.of(taken[name])),
            number(times_faster(taken[name], taken[IMPORT])),
            number(variants[name].peak_mb),
        ]
        for name in variants
        if name in taken and IMPORT in taken
    ]
    titles = ["process", "s, median", "least", "middle half", "x import torch", "memory, MB"]
    ratio = times_faster(taken[CELL], taken[IMPORT]) if {CELL, IMPORT} <= taken.keys() else None
    text = "time of a cell's start, as a multiple of `import torch`"
    return Section(
        "W5: Start of a cell",
        [
            "From the start of a process to its end: `cohort run ... --until 1` loads prepared data (the bundled digits) and shards, "
            "builds `aml-lenet`, does one round of one local step, saves a checkpoint and ends. "
            f"{rounds} of each, interleaved. Memory: the largest resident set of the process.",
            table(titles, rows),
        ],
        [Goal(text, 1.2, ratio, at_least=False)],
        [f"{name}: failed, {reason}" for name, reason in failed.items()],
    )


def cells(project: Path) -> dict[str, Fresh]:
    """The two ways to start a cell in this project folder, whose data, shards and plan file are made here."""
    add_study(project, "start", SETTINGS, AXES)
    (cell,) = planned(project, "start").cells.values()

    def forget() -> None:
        for state in (project / "results/cells").rglob("*.state"):
            shutil.rmtree(state)

    def run(cell: str, *options: str) -> Fresh:
        command = [sys.executable, "-m", "cohort", "run", cell, "--until", "1", *options]
        return Fresh(command, environment(project, os.environ), project, before=forget)

    by_name = run(cell.digest, "--config", "studies=start")
    by_name.go()  # prepares the data, deals the shards and writes the plan file
    return {CELL: run(f"results/plan/{cell.digest}.json"), BY_NAME: by_name}
