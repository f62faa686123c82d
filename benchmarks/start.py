"""W5: how long a cell takes to start."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from benchmarks.processes import Command
from benchmarks.project import add_study, copy_project, digests, environment
from benchmarks.sweeps import Summary, time_interleaved, times_faster
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
    "a cell from its plan file",
    "a cell by digest, including planning",
)


def measure(sweeps: int, folder: Path) -> Section:
    """Time processes from start to exit: `import torch`, and a cell up to its first checkpoint."""
    project = copy_project(folder)
    variants = {
        IMPORT: Command(
            [sys.executable, "-c", "import torch"], environment(project, os.environ), project
        ),
        **cells(project),
    }
    taken, failed = time_interleaved(variants, sweeps)
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
    titles = ["process", "median s", "min", "middle half", "vs import torch", "memory, MB"]
    ratio = times_faster(taken[CELL], taken[IMPORT]) if {CELL, IMPORT} <= taken.keys() else None
    text = "time to start a cell relative to `import torch`"
    return Section(
        "W5: Start of a cell",
        [
            "From process start to exit: `cohort run ... --until 1` loads prepared data (the "
            "bundled digits) and shards, builds `aml-lenet`, runs one round of one local step and "
            f"saves a checkpoint. {sweeps} runs of each, interleaved. Memory: peak resident set "
            "size.",
            table(titles, rows),
        ],
        [Goal(text, 1.2, ratio, at_least=False)],
        [f"{name}: failed, {reason}" for name, reason in failed.items()],
    )


def cells(project: Path) -> dict[str, Command]:
    """Prepare a cell in a project folder; return the commands that start it, by title."""
    add_study(project, "start", SETTINGS, AXES)
    (digest,) = digests(project, "start")

    def reset() -> None:
        for state in (project / "results/cells").rglob("*.state"):
            shutil.rmtree(state)

    def run(cell: str, *options: str) -> Command:
        command = [sys.executable, "-m", "cohort", "run", cell, "--until", "1", *options]
        return Command(command, environment(project, os.environ), project, before=reset)

    by_name = run(digest, "--config", "studies=start")
    by_name.run()  # prepares data and shards, writes the plan file
    return {CELL: run(f"results/plan/{digest}.json"), BY_NAME: by_name}
