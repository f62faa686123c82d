"""`python -m benchmarks.against REVISION [PART ...]`: is the working tree slower than a revision? Both
take turns in random order; the old one runs its own variant `ours` on work drawn by this one."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import contest, work
from benchmarks.contest import OURS, OURS_PER_MACHINE, Entry
from benchmarks.machine import commit, describe_machine
from benchmarks.peers import ROOT
from benchmarks.processes import Command, Failed, middle_half, time_interleaved, times_faster
from benchmarks.project import add_study, copy_project, digests, environment
from benchmarks.tables import number, table
from benchmarks.workloads import W1, W2, W2A, W3, Workload

TOLERANCE = 0.03
PASSES = 3  # each with new processes, as some processes stay slower than others of the same program
TITLES = ("part", "quantity", "old", "new", "new / old", "middle half", "pairs", "verdict")
BOTH = (OURS_PER_MACHINE, OURS)

SMALL = {"dataset": "digits", "clients": 10, "cohort": 1, "rounds": 2, "batch": 64}
START = SMALL | {"model": "aml-lenet", "evaluate_every": 2, "lr": 0.01}
START_AXES = {"partition": ["iid"], "J": ["J1"], "strategy": ["fedavg"], "seed": [0]}
CELLS = 20_000  # of a dry run
CELLS_AXES = {
    "partition": ["iid", "classes-1", "classes-2", "classes-3", "dir-0.1"],
    "J": ["J1", "J2", "J4", "J8"],
    "strategy": ["fedavg", "loss"],
    "seed": list(range(25)),
}
PER_RATE = 1_000  # cells of these axes for each learning rate
LARGE = (
    replace(W2, name="300 clients", J="J4", clients=1000, cohort=300, size=50, batch=16),
    replace(W1, name="vgg11", model="vgg11", classes=10, J="J2", batch=32),
)


class Trees(NamedTuple):
    """The two source trees to compare: ours and the older one."""

    old: Path
    new: Path


Part = Callable[[Trees, Path], "list[Comparison]"]
"""Measures both trees, using an empty folder."""


@dataclass(frozen=True)
class Comparison:
    """One quantity measured in both trees, pair by pair in the same sweeps; less is better."""

    part: str
    quantity: str
    old: Sequence[float]
    new: Sequence[float]

    @property
    def worse(self) -> bool:
        """Whether the median ratio exceeds 1 by more than the tolerance."""
        return times_faster(self.new, self.old) > 1 + TOLERANCE

    def row(self) -> list[str]:
        """The row of the table under TITLES."""
        ratios = [new / old for old, new in zip(self.old, self.new, strict=True)]
        low, high = middle_half(ratios)
        return [
            self.part,
            self.quantity,
            number(median(self.old)),
            number(median(self.new)),
            f"{median(ratios):.3f}",
            f"{low:.3f} to {high:.3f}",
            str(len(ratios)),
            f"**worse by more than {100 * TOLERANCE:.0f}%**" if self.worse else "ok",
        ]


def parts(tiny: bool) -> Mapping[str, Part]:
    """The comparable parts of the benchmark by name; with `tiny`, scaled down."""

    def rounds(workload: Workload, entries: Sequence[Entry], sweeps: int, **options: bool) -> Part:
        load = workload.tiny() if tiny else workload
        count = 2 if tiny else sweeps
        return lambda trees, folder: compare_rounds(load, entries, count, trees, folder, **options)

    def large(trees: Trees, folder: Path) -> list[Comparison]:
        comparisons = compare_planning(1_000 if tiny else CELLS, trees, folder / "planning")
        for workload in LARGE:
            part = rounds(workload, (OURS_PER_MACHINE,), 3, alone=False)
            comparisons += part(trees, folder / workload.model)
        return comparisons

    return {
        "W1": rounds(W1, BOTH, 8),
        "W2": rounds(W2, BOTH, 5),
        "W2a": rounds(W2A, BOTH, 3),
        "W3": rounds(W3, (OURS,), 20),
        "W5": lambda trees, folder: compare_starts(2 if tiny else 15, trees, folder),
        "W6": large,
    }


def compare_rounds(
    workload: Workload,
    entries: Sequence[Entry],
    sweeps: int,
    trees: Trees,
    folder: Path,
    *,
    alone: bool = True,
) -> list[Comparison]:
    """Compare two trees by a round's seconds and memory, on the same samples and weights."""
    work.draw(workload, folder)
    old, new = (
        [replace(entry, title=f"{side}: {entry.title}", tree=tree) for entry in entries]
        for side, tree in trees._asdict().items()
    )
    outcomes = []
    for _ in range(PASSES):
        outcomes.append(contest.contest([*old, *new], folder, sweeps, alone=alone))
        if problems := outcomes[-1].problems():
            raise Failed("; ".join(problems))
    comparisons = []
    for entry, *sides in zip(entries, old, new, strict=True):
        titles = [side.title for side in sides]
        seconds = ([s for outcome in outcomes for s in outcome.seconds[name]] for name in titles)
        comparisons.append(Comparison(workload.name, f"s/round, {entry.title}", *seconds))
        if alone:
            before, after = (outcomes[0].answers[title] for title in titles)
            difference = contest.largest_difference(after, before)
            if not difference <= contest.DIFFERENT:
                apart = f"differ by {number(difference)}"
                raise Failed(f"the results of {' and '.join(titles)} {apart}")
            memory = ([outcome.peak_mb[title] for outcome in outcomes] for title in titles)
            comparisons.append(Comparison(workload.name, f"memory in MB, {entry.title}", *memory))
    return comparisons


def compare_starts(sweeps: int, trees: Trees, folder: Path) -> list[Comparison]:
    """Compare two trees by the time from the start of a cell's process to its first checkpoint."""
    old, new = _start(trees.old), _start(copy_project(folder, trees.new))
    return _compare_commands("W5", "a cell from its plan file", old, new, sweeps)


def _start(project: Path) -> Command:
    """Prepare a cell in a project folder; return the command that starts it."""
    add_study(project, "start", START, START_AXES)
    (digest,) = digests(project, "start")

    def reset() -> None:
        for state in (project / "results/cells").rglob("*.state"):
            shutil.rmtree(state)

    def run(cell: str, *options: str) -> Command:
        command = [sys.executable, "-m", "cohort", "run", cell, "--until", "1", *options]
        return Command(command, environment(project, os.environ), project, before=reset)

    run(digest, "--config", "studies=start").run()  # prepares data and shards, writes the plan file
    return run(f"results/plan/{digest}.json")


def compare_planning(cells: int, trees: Trees, folder: Path) -> list[Comparison]:
    """Compare two trees by a dry run of so many cells."""
    rates = [number / 1000 for number in range(1, cells // PER_RATE + 1)]
    settings = SMALL | {"model": "small-mlp", "cohort": 3, "rounds": 4, "reserve": 60}
    snakemake = str(Path(sys.executable).with_name("snakemake"))
    command = [snakemake, "-n", "-q", "--config", "studies=cells"]
    projects = trees.old, copy_project(folder, trees.new)
    for project in projects:
        add_study(project, "cells", settings, CELLS_AXES | {"lr": rates})
    old, new = (Command(command, environment(p, os.environ), p) for p in projects)
    return _compare_commands("W6", f"dry run of {cells:,} cells", old, new, 4)


def _compare_commands(
    part: str, name: str, old: Command, new: Command, sweeps: int
) -> list[Comparison]:
    taken, failed = time_interleaved({"old": old, "new": new}, sweeps)
    if failed:
        raise Failed("; ".join(f"{side}: {reason}" for side, reason in failed.items()))
    return [
        Comparison(part, f"s, {name}", taken["old"], taken["new"]),
        Comparison(part, f"memory in MB, {name}", [old.peak_mb], [new.peak_mb]),
    ]


def compare(names: Sequence[str], parts_by_name: Mapping[str, Part], trees: Trees) -> int:
    """Compare the named parts, print the table, and return the exit status."""
    comparisons, failures = [], []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                measured = parts_by_name[name](trees, Path(folder) / "work")
            except (Failed, subprocess.CalledProcessError) as error:
                failures.append(f"{name}: {error}")
                continue
        comparisons += measured
        print(table(TITLES, [comparison.row() for comparison in measured]), flush=True)
    print(*failures, sep="\n", end="\n" if failures else "", file=sys.stderr)
    return int(bool(failures) or any(comparison.worse for comparison in comparisons))


def check_out(revision: str, folder: Path, repository: Path) -> None:
    """Write the files of a revision into a folder, without touching the repository."""
    command = ["git", "-C", str(repository), "archive", revision]
    files = subprocess.run(command, check=True, capture_output=True).stdout
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=files, check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if anything is worse or failed."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.against", description="Compare the working tree with a revision of it."
    )
    parser.add_argument("revision", help="the old tree: a commit, tag or branch")
    names = ", ".join(parts(False))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {names}; default: all")
    parser.add_argument("--tiny", action="store_true", help="few small rounds, to try the command")
    options = parser.parse_args(arguments)
    parts_by_name = parts(options.tiny)
    if unknown := [name for name in options.parts if name not in parts_by_name]:
        parser.error(f"there is no part {unknown[0]}; choose from {names}")
    command = ["python", "-m", "benchmarks.against", options.revision, *options.parts]
    with tempfile.TemporaryDirectory() as temporary:
        trees = Trees(Path(temporary) / "old", ROOT)
        try:
            check_out(options.revision, trees.old, ROOT)
        except subprocess.CalledProcessError as error:
            parser.error(f"git has no revision '{options.revision}': {error.stderr.decode()}")
        print(describe_machine(command, commit(), os.getloadavg()[0]), end=" ")
        print(f"Old: {commit(options.revision)}; new: the working tree.\n", flush=True)
        return compare(options.parts or list(parts_by_name), parts_by_name, trees)


if __name__ == "__main__":
    sys.exit(main())
