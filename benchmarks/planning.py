"""Dry runs of large studies, against a bare Snakefile with as many jobs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Command
from benchmarks.project import add_study, copy_project, digests, environment
from benchmarks.sweeps import Summary, time_interleaved, times_faster
from benchmarks.tables import Goal, number, seconds, table

SETTINGS = {
    "dataset": "digits",
    "model": "small-mlp",
    "clients": 10,
    "cohort": 3,
    "rounds": 4,
    "batch": 16,
    "reserve": 60,
}
AXES = {
    "partition": ["iid", "classes-1", "classes-2", "classes-3", "dir-0.1"],
    "J": ["J1", "J2", "J4", "J8"],
    "strategy": ["fedavg", "loss"],
    "seed": list(range(25)),
}
PER_RATE = 5 * 4 * 2 * 25  # cells for each learning rate
COMMAND = (str(Path(sys.executable).with_name("snakemake")), "-n", "-q")
BARE = """
rule all:
    input: [f"out/{{i}}.txt" for i in range({cells})]

rule job:
    output: "out/{{i}}.txt"
    script: "job.py"
"""


@dataclass
class Planning:
    """Seconds and peak memory of dry runs by number of cells, as pairs (ours, bare Snakefile)."""

    seconds: dict[int, tuple[list[float], list[float]]]
    peak_mb: dict[int, tuple[float, float]]
    failures: list[str]

    def table(self) -> str:
        """The Markdown table of all sizes."""
        titles = [
            "cells",
            "ours, median s",
            "min",
            "middle half",
            "bare, median s",
            "ours / bare",
            "ours, MB",
            "bare, MB",
        ]
        rows = []
        for cells, (ours, bare) in self.seconds.items():
            ratio = number(times_faster(ours, bare))
            memory = map(number, self.peak_mb[cells])
            rows.append(
                [
                    f"{cells:,}",
                    *seconds(Summary.of(ours)),
                    number(Summary.of(bare).median),
                    ratio,
                    *memory,
                ]
            )
        return table(titles, rows)

    def goals(self) -> list[Goal]:
        """The goals for the largest study."""
        most = max(self.seconds, default=0)
        ratio = times_faster(*self.seconds[most]) if most else None
        memory = self.peak_mb[most][0] if most else None
        return [
            Goal(
                f"dry run of {most:,} cells relative to a bare Snakefile",
                1.6,
                ratio,
                at_least=False,
            ),
            Goal(
                "peak memory of that dry run, MB (resident set)",
                1000,
                memory,
                at_least=False,
            ),
        ]


def plan_cells(sizes: tuple[int, ...], rounds: int, folder: Path) -> Planning:
    """Measure dry runs of studies of these sizes, each a multiple of 1,000 cells."""
    project = copy_project(folder / "project")
    variants: dict[str, Command] = {}
    for cells in sizes:
        bare = folder / f"bare{cells}"
        bare.mkdir()
        (bare / "Snakefile").write_text(BARE.format(cells=cells))
        (bare / "job.py").touch()
        variants[f"ours {cells}"] = dry_run(project, cells)
        assert len(digests(project, study_of(cells))) == cells
        variants[f"bare {cells}"] = Command(COMMAND, os.environ, bare)
    variants[f"ours {sizes[0]}"].run()  # compiles the bytecode
    taken, failed = time_interleaved(variants, rounds, warm=False)
    measured = [cells for cells in sizes if {f"ours {cells}", f"bare {cells}"} <= taken.keys()]
    return Planning(
        {cells: (taken[f"ours {cells}"], taken[f"bare {cells}"]) for cells in measured},
        {
            cells: (variants[f"ours {cells}"].peak_mb, variants[f"bare {cells}"].peak_mb)
            for cells in measured
        },
        [f"dry run, {name} cells: failed, {reason}" for name, reason in failed.items()],
    )


def study_of(cells: int) -> str:
    """The name of the study with this many cells."""
    return f"cells{cells}"


def dry_run(project: Path, cells: int) -> Command:
    """Add a study of `cells` cells (a multiple of 1,000) to a project; return its dry run."""
    study, rates = study_of(cells), [number / 1000 for number in range(1, cells // PER_RATE + 1)]
    add_study(project, study, SETTINGS, AXES | {"lr": rates})
    command = (*COMMAND, "--config", f"studies={study}")
    return Command(command, environment(project, os.environ), project)
