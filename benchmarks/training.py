"""W1 to W3: training rounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks import work
from benchmarks.contest import (
    BATCHED,
    BLAZEFL,
    BLAZEFL_THREADS,
    FEDLAB,
    FLOWER,
    OURS,
    OURS_AVX2,
    OURS_PER_MACHINE,
    PFL,
    PFL_ONE_THREAD,
    PLAIN,
    PLAIN_ONE_THREAD,
    RATES,
    SERIAL,
    Entry,
    Outcome,
    contest,
    largest_difference,
)
from benchmarks.results import Results
from benchmarks.tables import Goal, Section, number
from benchmarks.workloads import Workload
from cohort.cell.settings import local_work

OWN = (OURS_PER_MACHINE, OURS, OURS_AVX2)
BLAZE = (BLAZEFL, BLAZEFL_THREADS)
ALL = (*OWN, PLAIN, PLAIN_ONE_THREAD, FLOWER, PFL, PFL_ONE_THREAD, FEDLAB, *BLAZE)
EAGER = Entry(
    "plain loop without DataLoader, one thread",
    "plain",
    options=("--threads", "1", "--style", "eager"),
)
ENTRIES = {
    "W2": (*ALL, SERIAL, BATCHED),
    "W2b": (OURS_PER_MACHINE, OURS, PLAIN, *BLAZE),
    "W3": (OURS, OURS_AVX2, SERIAL, EAGER, PLAIN_ONE_THREAD),
}
"""The variants that each workload measures, where these are not `ALL`."""
REFERENCES = {
    "W2b": {
        "vs plain": PLAIN,
        "vs BlazeFL, processes": BLAZEFL,
        "vs BlazeFL, threads": BLAZEFL_THREADS,
    },
    "W3": {"vs eager": EAGER},
}
DEFAULT_REFERENCES = {"vs plain": PLAIN, "vs Flower": FLOWER}
SPEEDUP_GOALS = {"W1": {FLOWER: 4.5}, "W2": {FLOWER: 6.5, PFL: 7.0}, "W2a": {FLOWER: 15.0}}
"""Per machine."""
MEMORY_GOALS = {"W2": 0.12}  # of Flower's


def measure(workload: Workload, folder: Path) -> Section:
    """Measure the rounds of a workload by every variant."""
    entries = ENTRIES.get(workload.name, ALL)
    facts = work.draw_and_count(workload, folder)
    outcome = contest((*entries, *RATES.values()), folder, workload.rounds)
    results = Results(
        outcome,
        entries,
        REFERENCES.get(workload.name, DEFAULT_REFERENCES),
        facts["round"],
        throughputs={"clients/s": workload.cohort, "steps/s": workload.cohort * workload.steps},
        compared=workload.augmentation == "none",
    )
    text = [
        _description(workload, facts),
        results.table(),
        results.peak(),
        _comparison(results, folder),
    ]
    return Section(
        f"{workload.name}: {workload.title}", text, goals(workload, outcome), results.problems()
    )


def goals(workload: Workload, outcome: Outcome) -> list[Goal]:
    """The goals for a workload, each with the measured value."""
    if workload.batch == 1:
        text = "speedup over the plain loop without DataLoader, one thread each"
        return [Goal(text, 10, outcome.ratio(EAGER, OURS))]
    result = [
        Goal(
            f"speedup over {peer.title}, per machine", bound, outcome.ratio(peer, OURS_PER_MACHINE)
        )
        for peer, bound in SPEEDUP_GOALS.get(workload.name, {}).items()
    ]
    if workload.name in MEMORY_GOALS:
        memory = outcome.memory_ratio(OURS_PER_MACHINE, FLOWER)
        text = "memory per machine relative to Flower"
        result.append(Goal(text, MEMORY_GOALS[workload.name], memory, at_least=False))
    return result


def _comparison(results: Results, folder: Path) -> str:
    if not results.compared:
        return "Each variant draws its own augmentations, so weights are not compared."
    if results.reference.title not in results.outcome.answers:
        return f"'{results.reference.title}' failed, so weights are not compared."
    start = np.concatenate(
        [values.reshape(-1) for values in work.read_work(folder).weights.values()]
    )
    moved = largest_difference(start, results.outcome.answers[results.reference.title])
    return (
        f"Difference to '{results.reference.title}'; the first round changed the weights by "
        f"{number(moved)}."
    )


def _description(workload: Workload, facts: Mapping[str, int]) -> str:
    amount, epochs = local_work(workload.J)
    shape = "x".join(map(str, workload.shape))
    clients = (
        f"{workload.cohort} of {workload.clients} clients" if workload.clients > 1 else "One client"
    )
    augmented = (
        f", augmented by `{workload.augmentation}`" if workload.augmentation != "none" else ""
    )
    work = f"{amount} {'epoch' if epochs else 'step'}{'s' if amount > 1 else ''}"
    return (
        f"{clients} with {workload.size} images of {shape}{augmented}, {work} with batch size "
        f"{workload.batch}; SGD with momentum {workload.momentum:g} and weight decay "
        f"{workload.weight_decay:g}; `{workload.model}` with {facts['weights']:,} weights. A round "
        f"takes {number(facts['round'] / 1e9)} GFLOP with direct convolutions (augmentation not "
        f"counted). {workload.rounds} rounds per variant, interleaved."
    )
