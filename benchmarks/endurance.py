"""Does memory grow over hundreds of rounds?"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks import work
from benchmarks.contest import OURS
from benchmarks.processes import pss_mb
from benchmarks.tables import Goal, Section, number, table
from benchmarks.workloads import Workload

CHECKS = 10


def measure(workload: Workload, rounds: int, folder: Path) -> Section:
    """Measure memory and time of a long run after each tenth of its rounds."""
    work.draw_and_count(workload, folder)
    memory, rows = [], []
    with OURS.live(folder) as live:
        for check in range(1, CHECKS + 1):
            taken = [live.run() for _ in range(rounds // CHECKS)]
            memory.append(pss_mb(live.processes[0]))
            rows.append(
                [str(check * (rounds // CHECKS)), number(memory[-1], 4), number(median(taken))]
            )
    text = (
        f"{workload.name} by {OURS.title}: proportional set size after each tenth of the rounds, "
        "and their median time."
    )
    goal = Goal(
        "final memory relative to memory after a tenth of the rounds",
        1.01,
        memory[-1] / memory[0],
        at_least=False,
    )
    return Section(
        f"{rounds} rounds", [text, table(["rounds", "memory, MB", "s/round"], rows)], [goal]
    )
