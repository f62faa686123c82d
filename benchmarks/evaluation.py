"""W4: the evaluation of a test set."""

from __future__ import annotations

from pathlib import Path

from benchmarks import work
from benchmarks.contest import ONE_THREAD, RATES, Entry, contest
from benchmarks.machine import cores
from benchmarks.results import Results
from benchmarks.tables import Goal, Section, number
from benchmarks.workloads import Workload

OURS = Entry("ours, one process", "evaluate_ours")
OURS_PER_MACHINE = Entry(f"ours, {cores()} processes", "evaluate_ours", cores())
LOADER = Entry("DataLoader loop", "evaluate_loader")
LOADER_ONE_THREAD = Entry("DataLoader loop, one thread", "evaluate_loader", options=ONE_THREAD)
ENTRIES = (OURS_PER_MACHINE, OURS, LOADER, LOADER_ONE_THREAD)


def measure(workload: Workload, folder: Path) -> Section:
    """The section: all samples of the workload are evaluated at its initial weights."""
    facts, count = work.write(workload, folder), workload.clients * workload.size
    outcome = contest((*ENTRIES, *RATES.values()), folder, workload.rounds)
    references = {"x DataLoader": LOADER, "x DataLoader, one thread": LOADER_ONE_THREAD}
    results = Results(outcome, ENTRIES, references, facts["forward"] * count, "evaluation")
    text = (
        f"Loss and accuracy of `{workload.model}` on {count:,} images of {'x'.join(map(str, workload.shape))}, which takes "
        f"{number(facts['forward'] * count / 1e9)} billion additions and multiplications by direct convolutions; ours finds "
        f"the calibration error too. {workload.rounds} evaluations by each variant, interleaved. Difference: of loss and accuracy."
    )
    goals = [
        Goal(
            "times as fast as the DataLoader loop, one thread each",
            2.4,
            outcome.ratio(LOADER_ONE_THREAD, OURS),
        )
    ]
    return Section(
        f"{workload.name}: {workload.title}",
        [text, results.table(), results.peak()],
        goals,
        results.complaints(),
    )
