"""Where a round goes: the operations that take most of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.peers import environment
from benchmarks.tables import Section, number, table
from benchmarks.workloads import Workload

LINES = 10


def measure(workloads: Sequence[Workload], folder: Path) -> Section:
    """The section: a table for each workload."""
    text = [
        "One round of ours, one process, under `torch.profiler`: each operation's own time and its part of the round as profiled, in which "
        "small operations look dearer than they are. The last line is Python, and operations that take less."
    ]
    for workload in workloads:
        here = folder / workload.name
        work.write(workload, here)
        text += [f"{workload.name}, {workload.title}:", _table(_profile(here))]
    return Section("Where a round goes", text)


def _profile(folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.variants.profiled", str(folder)]
    done = subprocess.run(
        command,
        env=environment(),
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    profile: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return profile


def _table(profile: dict[str, Any]) -> str:
    whole = profile["seconds"]
    first = sorted(profile["operations"].items(), key=lambda entry: -entry[1][0])[: LINES - 1]
    rest = whole - sum(seconds for _, (seconds, _) in first)
    rows = [
        [f"`{name}`", f"{count:,}", number(seconds), f"{seconds / whole:.1%}"]
        for name, (seconds, count) in first
    ]
    return table(
        ["operation", "calls", "s", "of the round"],
        [*rows, ["all else", "", number(rest), f"{rest / whole:.1%}"]],
    )
