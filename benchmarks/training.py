"""The table of a workload: seconds, speedups and memory of every variant's rounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks import contest as entry
from benchmarks import work
from benchmarks.contest import DIFFERENT, Entry, Outcome, contest
from benchmarks.processes import middle_half
from benchmarks.tables import NOTHING, Section, number, table
from benchmarks.workloads import Workload
from cohort.settings import local_work

BLAZE = (entry.BLAZEFL, entry.BLAZEFL_THREADS)
OWN = (entry.OURS_PER_MACHINE, entry.OURS)
PEERS = (entry.FLOWER, entry.PFL, *BLAZE)
ALL = (*OWN, entry.PLAIN, entry.PLAIN_ONE_THREAD, *PEERS)
ENTRIES = {
    "W2": (*ALL, entry.SERIAL),
    "W2b": (*OWN, entry.PLAIN, *BLAZE),
    "W3": (entry.OURS, entry.SERIAL, entry.EAGER, entry.PLAIN_ONE_THREAD),
}
"""The variants that each workload measures, where these are not `ALL`."""
REFERENCES = {
    "W2b": {"vs plain": entry.PLAIN, "vs BlazeFL": entry.BLAZEFL_THREADS},
    "W3": {"vs eager": entry.EAGER},
}
"""What speedups are relative to, by column. Results are compared with the first one's."""
DEFAULT_REFERENCES = {"vs plain": entry.PLAIN, "vs Flower": entry.FLOWER}


def measure(workload: Workload, folder: Path) -> Section:
    """Measure the rounds of a workload by every variant."""
    entries = ENTRIES.get(workload.name, ALL)
    references = REFERENCES.get(workload.name, DEFAULT_REFERENCES)
    work.draw(workload, folder)
    outcome = contest(entries, folder, workload.rounds)
    reference = next(iter(references.values())).title
    differences = outcome.differences(reference)
    failures = [
        f"{title}: its result differs from that of '{reference}' by {number(difference)}"
        for title, difference in differences.items()
        if not difference <= DIFFERENT
    ]
    titles = ["variant", "median s/round", "min", "middle half", "clients/s", "steps/s"]
    titles += [*references, "memory, MB", "difference"]
    rows = [_row(variant, workload, outcome, references, differences) for variant in entries]
    weights = sum(values.size for values in work.read_work(folder).weights.values())
    return Section(
        f"{workload.name}: {workload.title}",
        [_description(workload, weights), table(titles, rows)],
        [*outcome.problems(), *failures],
    )


def _row(
    variant: Entry,
    workload: Workload,
    outcome: Outcome,
    references: Mapping[str, Entry],
    differences: Mapping[str, float],
) -> list[str]:
    taken = outcome.seconds.get(variant.title)
    if taken is None:
        why = "not installed" if variant.title in outcome.missing else "failed"
        return [variant.title, why, *[NOTHING] * (6 + len(references))]
    low, high = middle_half(taken)
    rates = [workload.cohort / median(taken), workload.cohort * workload.steps / median(taken)]
    ratios = [outcome.ratio(other, variant) for other in references.values()]
    numbers = [*rates, *ratios, outcome.peak_mb.get(variant.title), differences.get(variant.title)]
    return [
        variant.title,
        number(median(taken)),
        number(min(taken)),
        f"{number(low)} to {number(high)}",
        *map(number, numbers),
    ]


def _description(workload: Workload, weights: int) -> str:
    amount, epochs = local_work(workload.J)
    work = f"{amount} {'epoch' if epochs else 'step'}{'s' if amount > 1 else ''}"
    shape = "x".join(map(str, workload.shape))
    return (
        f"{workload.cohort} of {workload.clients} clients with {workload.size} images of "
        f"{shape}, {work} with batch size "
        f"{workload.batch}; SGD with momentum {workload.momentum:g} and weight decay "
        f"{workload.weight_decay:g}; `{workload.model}` with {weights:,} weights. "
        f"{workload.rounds} rounds per variant, interleaved."
    )
