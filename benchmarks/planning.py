"""Dry runs of large studies, against a bare Snakefile of as many jobs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Fresh
from benchmarks.project import add_study, copied, environment, planned
from benchmarks.sweeps import Summary, interleaved, times_faster
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
    """Seconds and memory of the dry runs, by the number of cells: of ours, and of a bare Snakefile."""

    seconds: dict[int, tuple[list[float], list[float]]]
    peak_mb: dict[int, tuple[float, float]]
    failures: list[str]

    def table(self) -> str:
        """In Markdown."""
        titles = [
            "cells",
            "ours, s, median",
            "least",
            "middle half",
            "bare, s, median",
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
        """What was to be reached with the most cells."""
        most = max(self.seconds, default=0)
        ratio = times_faster(*self.seconds[most]) if most else None
        memory = self.peak_mb[most][0] if most else None
        return [
            Goal(
                f"dry run of {most:,} cells, as a multiple of a bare Snakefile's",
                1.6,
                ratio,
                at_least=False,
            ),
            Goal(
                f"its peak memory, in MB (resident set), {most:,} cells",
                1000,
                memory,
                at_least=False,
            ),
        ]


def plan_cells(sizes: tuple[int, ...], rounds: int, folder: Path) -> Planning:
    """Measure dry runs of so many cells, which are multiples of a thousand."""
    project = copied(folder / "project")
    variants: dict[str, Fresh] = {}
    for cells in sizes:
        bare = folder / f"bare{cells}"
        bare.mkdir()
        (bare / "Snakefile").write_text(BARE.format(cells=cells))
        (bare / "job.py").touch()
        variants[f"ours {cells}"] = dry_run(project, cells)
        assert len(planned(project, study_of(cells)).cells) == cells
        variants[f"bare {cells}"] = Fresh(COMMAND, os.environ, bare)
    variants[f"ours {sizes[0]}"].go()  # what was never run is compiled
    taken, failed = interleaved(variants, rounds, warm=False)
    there = [cells for cells in sizes if {f"ours {cells}", f"bare {cells}"} <= taken.keys()]
    return Planning(
        {cells: (taken[f"ours {cells}"], taken[f"bare {cells}"]) for cells in there},
        {
            cells: (variants[f"ours {cells}"].peak_mb, variants[f"bare {cells}"].peak_mb)
            for cells in there
        },
        [f"dry run, {name} cells: failed, {reason}" for name, reason in failed.items()],
    )


def study_of(cells: int) -> str:
    """The name of the study with this many cells."""
    return f"cells{cells}"


def dry_run(project: Path, cells: int) -> Fresh:
    """The dry run of a study of so many cells, a multiple of a thousand, which is added to this project folder."""
    study, rates = study_of(cells), [number / 1000 for number in range(1, cells // PER_RATE + 1)]
    add_study(project, study, SETTINGS, AXES | {"lr": rates})
    command = (*COMMAND, "--config", f"studies={study}")
    return Fresh(command, environment(project, os.environ), project)
