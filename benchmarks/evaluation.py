"""W4: evaluating a test set."""

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
OURS_AVX2 = Entry("ours, AVX2 code, one process", "evaluate_ours", options=("--avx2",))
LOADER = Entry("DataLoader loop", "evaluate_loader")
LOADER_ONE_THREAD = Entry("DataLoader loop, one thread", "evaluate_loader", options=ONE_THREAD)
ENTRIES = (OURS_PER_MACHINE, OURS, OURS_AVX2, LOADER, LOADER_ONE_THREAD)


def measure(workload: Workload, folder: Path) -> Section:
    """Measure the evaluation of all samples of the workload at the initial weights."""
    facts, count = work.draw_and_count(workload, folder), workload.clients * workload.size
    outcome = contest((*ENTRIES, *RATES.values()), folder, workload.rounds)
    references = {"vs DataLoader": LOADER, "vs DataLoader, one thread": LOADER_ONE_THREAD}
    results = Results(outcome, ENTRIES, references, facts["forward"] * count, "evaluation")
    text = (
        f"Loss and accuracy of `{workload.model}` on {count:,} images of "
        f"{'x'.join(map(str, workload.shape))}: {number(facts['forward'] * count / 1e9)} GFLOP "
        "with direct convolutions. Ours also computes the calibration error. "
        f"{workload.rounds} evaluations per variant, interleaved. "
        "Difference: in loss and accuracy."
    )
    goals = [
        Goal(
            "speedup over the DataLoader loop, per machine",
            6,
            outcome.ratio(LOADER, OURS_PER_MACHINE),
        )
    ]
    return Section(
        f"{workload.name}: {workload.title}",
        [text, results.table(), results.peak()],
        goals,
        results.problems(),
    )
