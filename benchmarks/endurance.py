"""Whether many rounds take more memory than few."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks import work
from benchmarks.contest import OURS
from benchmarks.processes import proportional_mb
from benchmarks.tables import Goal, Section, number, table
from benchmarks.workloads import Workload

LOOKS = 10


def measure(workload: Workload, rounds: int, folder: Path) -> Section:
    """The section: memory and time after each tenth of the rounds."""
    work.write(workload, folder)
    memory, rows = [], []
    with OURS.live(folder) as live:
        for look in range(1, LOOKS + 1):
            taken = [live.go() for _ in range(rounds // LOOKS)]
            memory.append(proportional_mb(live.processes[0]))
            rows.append(
                [str(look * (rounds // LOOKS)), number(memory[-1], 4), number(median(taken))]
            )
    text = f"{workload.name} by {OURS.title}: its proportional set size after so many rounds, and the median time of the last of them."
    goal = Goal(
        "memory at the end, as a multiple of that after a tenth of the rounds",
        1.01,
        memory[-1] / memory[0],
        at_least=False,
    )
    return Section(
        f"{rounds} rounds", [text, table(["rounds", "memory, MB", "s per round"], rows)], [goal]
    )
