"""The PyTorch operations that take most of a round."""

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
    """Profile one round of each workload."""
    text = [
        "One round of ours, one process, under `torch.profiler`: self time of each operation and "
        "its share of the profiled round. Profiling overstates small operations. The last row is "
        "Python and all other operations."
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
        ["operation", "calls", "self time, s", "share"],
        [*rows, ["everything else", "", number(rest), f"{rest / whole:.1%}"]],
    )
