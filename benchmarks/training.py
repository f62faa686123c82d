"""W1 to W3: rounds of local training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks import work
from benchmarks.contest import (
    BATCHED,
    FEDLAB,
    FLOWER,
    OURS,
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

ALL = (OURS_PER_MACHINE, OURS, PLAIN, PLAIN_ONE_THREAD, FLOWER, PFL, PFL_ONE_THREAD, FEDLAB)
EAGER = Entry(
    "plain loop without DataLoader, one thread",
    "plain",
    options=("--threads", "1", "--style", "eager"),
)
ONE_BY_ONE = (OURS, SERIAL, EAGER, PLAIN_ONE_THREAD)
TRAINERS = {"W2": (SERIAL, BATCHED)}  # beside the one that `auto` takes
LEAST = {"W1": 1.8, "W2": 1.7}  # times as fast as peers, per machine


def measure(workload: Workload, folder: Path) -> Section:
    """The section of a workload."""
    one_by_one = workload.batch == 1
    entries = ONE_BY_ONE if one_by_one else (*ALL, *TRAINERS.get(workload.name, ()))
    facts = work.write(workload, folder)
    outcome = contest((*entries, *RATES.values()), folder, workload.rounds)
    results = Results(
        outcome,
        entries,
        {"x eager": EAGER} if one_by_one else {"x plain": PLAIN, "x Flower": FLOWER},
        facts["round"],
        compared=workload.augmentation == "none",
    )
    text = [
        _description(workload, facts),
        results.table(),
        results.peak(),
        _comparison(results, folder),
    ]
    return Section(
        f"{workload.name}: {workload.title}", text, goals(workload, outcome), results.complaints()
    )


def goals(workload: Workload, outcome: Outcome) -> list[Goal]:
    """What was to be reached on this workload."""
    if workload.name == "W3":
        return [
            Goal(
                "times as fast as the plain loop without DataLoader, one thread each",
                1.4,
                outcome.ratio(EAGER, OURS),
            )
        ]
    if workload.name not in LEAST:
        return []
    machine = {
        f"times as fast as {peer.title}, per machine": outcome.ratio(peer, OURS_PER_MACHINE)
        for peer in (FLOWER, PFL)
    }
    core = {
        f"times as fast as {peer.title}, per core": outcome.ratio(peer, OURS)
        for peer in (PLAIN_ONE_THREAD, PFL_ONE_THREAD)
    }
    found = [Goal(text, LEAST[workload.name], ratio) for text, ratio in machine.items()]
    found += (
        [Goal(text, 1.6, ratio) for text, ratio in core.items()] if workload.name == "W2" else []
    )
    memory = outcome.memory_ratio(OURS_PER_MACHINE, FLOWER)
    return [*found, Goal("memory per machine, as a part of Flower's", 1.0, memory, at_least=False)]


def _comparison(results: Results, folder: Path) -> str:
    if not results.compared:
        return "Everyone draws its own augmentation, so weights are not compared."
    if results.reference.title not in results.outcome.answers:
        return f"'{results.reference.title}' failed, so weights are not compared."
    start = np.concatenate([values.reshape(-1) for values in work.read(folder).weights.values()])
    moved = largest_difference(start, results.outcome.answers[results.reference.title])
    return (
        f"Difference: the largest of all weights' to those of '{results.reference.title}' after the first round, as a part of the largest "
        f"weight. The round moved them by {number(moved)}."
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
        f"{clients} with {workload.size} images of {shape}{augmented}, {work} in batches of {workload.batch}; SGD with momentum "
        f"{workload.momentum:g} and weight decay {workload.weight_decay:g}; `{workload.model}` with {facts['weights']:,} weights. A round "
        f"needs {number(facts['round'] / 1e9)} billion additions and multiplications, by direct convolutions (augmentation not counted). "
        f"{workload.rounds} rounds of each variant, interleaved."
    )
