"""`python -m benchmarks.against REVISION [PART ...]`: is the working tree slower than a revision?

Both trees take turns in one run, in random order, so that a busy machine slows both down alike.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks import evaluation, growth, planning, start, work
from benchmarks.contest import OURS, OURS_PER_MACHINE, Entry, Outcome, contest, largest_difference
from benchmarks.machine import commit, describe_machine
from benchmarks.peers import ROOT
from benchmarks.processes import Command, Failed
from benchmarks.project import copy_project
from benchmarks.results import DIFFERENT
from benchmarks.sweeps import Summary, time_interleaved, times_faster
from benchmarks.tables import number, table
from benchmarks.workloads import W1, W2, W2A, W3, W4, Workload

TOLERANCE = 0.03
PASSES = 3  # each with new processes, as some processes stay slower than others of the same program
TITLES = ("part", "quantity", "old", "new", "new / old", "middle half", "pairs", "verdict")


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
    def ratio(self) -> float:
        """New over old: the median over pairs."""
        return times_faster(self.new, self.old)

    @property
    def worse(self) -> bool:
        """Whether the new tree exceeds the old one by more than the tolerance."""
        return self.ratio > 1 + TOLERANCE

    def row(self) -> list[str]:
        """The row of the table under TITLES."""
        ratios = [new / old for old, new in zip(self.old, self.new, strict=True)]
        low, high = Summary.of(ratios).quarters
        return [
            self.part,
            self.quantity,
            number(median(self.old)),
            number(median(self.new)),
            f"{self.ratio:.3f}",
            f"{low:.3f} to {high:.3f}",
            str(len(ratios)),
            f"**worse by more than {100 * TOLERANCE:.0f}%**" if self.worse else "ok",
        ]


def parts(tiny: bool) -> Mapping[str, Part]:
    """The comparable parts of the benchmark by name; with `tiny`, scaled down."""

    def rounds(workload: Workload, entries: Sequence[Entry], sweeps: int) -> Part:
        load = workload.tiny() if tiny else workload
        return partial(compare_rounds, load, entries, 2 if tiny else sweeps)

    return {
        "W1": rounds(W1, (OURS_PER_MACHINE, OURS), 4),
        "W2": rounds(W2, (OURS_PER_MACHINE, OURS), 5),
        "W2a": rounds(W2A, (OURS_PER_MACHINE, OURS), 3),
        "W3": rounds(W3, (OURS,), 20),
        "W4": rounds(W4, (evaluation.OURS_PER_MACHINE, evaluation.OURS), 4),
        "W5": partial(compare_starts, 2 if tiny else 15),
        "W6": partial(compare_large_sizes, tiny),
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
    """Compare two trees by a round's seconds and memory; both read the same samples and weights."""
    work.draw_and_count(workload, folder)
    old, new = (_entries_of_tree(tree, side, entries) for side, tree in trees._asdict().items())
    outcomes = []
    for _ in range(PASSES):
        outcomes.append(contest([*old, *new], folder, sweeps, alone=alone))
        if problems := outcomes[-1].problems():
            raise Failed("; ".join(problems))
    comparisons = []
    for entry, before, after in zip(entries, old, new, strict=True):
        seconds = (_all_seconds(outcomes, side.title) for side in (before, after))
        comparisons.append(Comparison(workload.name, f"s/round, {entry.title}", *seconds))
        if alone:
            _check_answers(outcomes[0], before.title, after.title)
            memory = (_all_peaks(outcomes, side.title) for side in (before, after))
            comparisons.append(Comparison(workload.name, f"memory in MB, {entry.title}", *memory))
    return comparisons


def compare_starts(sweeps: int, trees: Trees, folder: Path) -> list[Comparison]:
    """Compare two trees by the time from the start of a cell's process to its first checkpoint."""
    old, new = map(start.cells, _project_folders(trees, folder))
    comparisons = []
    for name in (start.CELL, start.BY_NAME):
        comparisons += _compare_commands("W5", name, old[name], new[name], sweeps)
    return comparisons


def compare_large_sizes(tiny: bool, trees: Trees, folder: Path) -> list[Comparison]:
    """Compare two source trees at one large size of each workload of W6: a dry run of many cells,
    rounds of many clients, and rounds of a large network."""
    cells = growth.CELLS[0] if tiny else growth.CELLS[-1]
    old, new = (planning.dry_run(project, cells) for project in _project_folders(trees, folder))
    comparisons = _compare_commands("W6", f"dry run of {cells:,} cells", old, new, 1 if tiny else 4)
    points = {
        "300 clients": replace(growth.CLIENTS, cohort=300),
        "vgg11": replace(growth.NETWORK, model="vgg11"),
    }
    for name, point in points.items():
        load = (point.tiny() if tiny else point, (OURS_PER_MACHINE,), 1 if tiny else 3)
        for comparison in compare_rounds(*load, trees, folder / name, alone=False):
            comparisons.append(
                replace(comparison, part="W6", quantity=f"{comparison.quantity}, {name}")
            )
    return comparisons


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


def _project_folders(trees: Trees, folder: Path) -> tuple[Path, Path]:
    """The project folders of the old and the new source tree: the old tree itself, which was
    checked out for this benchmark, and a copy of the new one."""
    return trees.old, copy_project(folder, trees.new)


def _entries_of_tree(tree: Path, side: str, entries: Sequence[Entry]) -> list[Entry]:
    return [replace(entry, title=f"{side}: {entry.title}", tree=tree) for entry in entries]


def _all_seconds(outcomes: Sequence[Outcome], title: str) -> list[float]:
    return [taken for outcome in outcomes for taken in outcome.seconds[title]]


def _all_peaks(outcomes: Sequence[Outcome], title: str) -> list[float]:
    return [outcome.peak_mb[title] for outcome in outcomes]


def _check_answers(outcome: Outcome, old: str, new: str) -> None:
    difference = largest_difference(outcome.answers[new], outcome.answers[old])
    if not difference <= DIFFERENT:
        raise Failed(f"the results of '{new}' and '{old}' differ by {number(difference)}")


def compare(names: Sequence[str], parts_by_name: Mapping[str, Part], trees: Trees) -> int:
    """Compare the named parts, print the table, and return the exit status."""
    comparisons, failures = [], []
    for name in names:
        started = time.monotonic()
        print(f"{name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                measured = parts_by_name[name](trees, Path(folder) / "work")
            except (Failed, subprocess.CalledProcessError) as error:
                failures.append(f"{name}: {error}")
                continue
        comparisons += measured
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
        print(table(TITLES, [comparison.row() for comparison in measured]), flush=True)
    for failure in failures:
        print(failure, file=sys.stderr)
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
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"one of {', '.join(parts(False))}; default: all"
    )
    parser.add_argument("--tiny", action="store_true", help="few small rounds, to try the command")
    options = parser.parse_args(arguments)
    parts_by_name = parts(options.tiny)
    if unknown := [name for name in options.parts if name not in parts_by_name]:
        parser.error(f"there is no part {unknown[0]}; choose from {', '.join(parts_by_name)}")
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
