"""How much of a round is spent in native code, and how fast that code is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.peers import environment
from benchmarks.tables import Goal, Section, number, table
from benchmarks.workloads import Workload

SHARE_GOALS = {"W2": 0.7}  # of the processor's peak, within native calls


def measure(workloads: Sequence[Workload], folder: Path) -> Section:
    """Time the native calls of a few rounds of each workload."""
    rows, goals = [], []
    for workload in workloads:
        here = folder / workload.name
        facts = work.draw_and_count(workload, here)
        profiles = _profile(here)
        rate = facts["round"] / profiles["native"]
        share = rate / profiles["peak"]
        rows.append(
            [
                f"{workload.name}, {workload.title}",
                *map(number, (profiles["round"], profiles["native"])),
                f"{profiles['native'] / profiles['round']:.0%}",
                f"{profiles['calls']:,}",
                f"{rate / 1e9:.0f}",
                f"{profiles['peak'] / 1e9:.0f}",
                f"{share:.0%}",
            ]
        )
        if workload.name in SHARE_GOALS:
            text = f"{workload.name}: share of the peak within native calls"
            goals.append(Goal(text, SHARE_GOALS[workload.name], share))
    titles = ["workload", "s/round", "s in native calls", "share", "calls"]
    titles += ["GFLOP/s in calls", "peak, GFLOP/s", "share of peak"]
    text = (
        "Rounds of ours, one process: medians of the rounds, and of the time within native calls. "
        "The rest is Python: batches, standardizing, averaging. Peak: independent fused "
        "multiply-adds in the registers of one core, measured between the rounds."
    )
    return Section("Where a round goes", [text, table(titles, rows)], goals)


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
