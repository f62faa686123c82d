"""W1 to W3: rounds of local training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import work
from benchmarks.contest import (
    FEDLAB,
    FLOWER,
    OURS,
    OURS_PER_MACHINE,
    PFL,
    PFL_ONE_THREAD,
    PLAIN,
    PLAIN_ONE_THREAD,
    RATES,
    Entry,
    Outcome,
    contest,
    largest_difference,
)
from benchmarks.rates import OPERATIONS, TITLES
from benchmarks.sweeps import Summary
from benchmarks.tables import NOTHING, Goal, Section, number, seconds, table
from benchmarks.workloads import Workload
from cohort.cell import local_work

ALL = (OURS_PER_MACHINE, OURS, PLAIN, PLAIN_ONE_THREAD, FLOWER, PFL, PFL_ONE_THREAD, FEDLAB)
EAGER = Entry("plain loop without DataLoader, one thread", "plain", options=("--threads", "1", "--style", "eager"))
ONE_BY_ONE = (OURS, EAGER, PLAIN_ONE_THREAD)
DIFFERENT = 1e-4  # a larger difference of the weights after one round is none of rounding


def measure(workload: Workload, folder: Path) -> Section:
    """The section of a workload."""
    entries = ONE_BY_ONE if workload.batch == 1 else ALL
    reference = EAGER if workload.batch == 1 else PLAIN
    facts = work.write(workload, folder)
    outcome = contest((*entries, *RATES.values()), folder, workload.rounds)
    section = Section(f"{workload.name}: {workload.title}", goals=goals(workload, outcome), failures=outcome.complaints())
    compared = workload.augmentation == "none"
    differences = differences_to(reference, outcome) if compared else {}
    section.failures += [
        f"{title}: the weights after one round differ from the plain loop's by {number(found)}"
        for title, found in differences.items()
        if found > DIFFERENT and title not in RATES
    ]
    rows = [_row(entry, reference, outcome, facts["round"], differences) for entry in entries]
    section.text = [_description(workload, facts), table(_titles(reference), rows), _peak(outcome)]
    if compared and reference.title in outcome.answers:
        start = np.concatenate([values.reshape(-1) for values in work.read(folder).weights.values()])
        moved = largest_difference(start, outcome.answers[reference.title])
        section.text.append(
            f"Difference: the largest of all weights' after the first round, as a part of the largest weight; the round moved them by "
            f"{number(moved)}."
        )
    elif not compared:
        section.text.append("Everyone draws its own augmentation, so weights are not compared.")
    return section


def goals(workload: Workload, outcome: Outcome) -> list[Goal]:
    """What was to be reached on this workload."""
    if workload.name == "W3":
        return [Goal("times as fast as the plain loop without DataLoader, one thread each", 1.4, outcome.ratio(EAGER, OURS))]
    if workload.name not in ("W1", "W2"):
        return []
    least = {"W1": 1.8, "W2": 1.7}[workload.name]
    found = [Goal(f"times as fast as {peer.title}, per machine", least, outcome.ratio(peer, OURS_PER_MACHINE)) for peer in (FLOWER, PFL)]
    if workload.name == "W2":
        found += [Goal(f"times as fast as {peer.title}, per core", 1.6, outcome.ratio(peer, OURS)) for peer in (PLAIN_ONE_THREAD, PFL_ONE_THREAD)]
    memory = outcome.memory_ratio(OURS_PER_MACHINE, FLOWER)
    return [*found, Goal("memory, as a part of Flower's, per machine", 1.0, memory, at_least=False)]


def differences_to(reference: Entry, outcome: Outcome) -> dict[str, float]:
    """How far the weights of each variant are from the reference's after one round."""
    if reference.title not in outcome.answers:
        return {}
    answer = outcome.answers[reference.title]
    return {title: largest_difference(other, answer) for title, other in outcome.answers.items() if title != reference.title}


def _titles(reference: Entry) -> list[str]:
    against = ["x plain", "x Flower"] if reference is PLAIN else ["x without DataLoader"]
    return ["variant", "s/round, median", "least", "middle half", *against, "memory, MB", "of the peak", "difference"]


def _row(entry: Entry, reference: Entry, outcome: Outcome, operations: int, differences: dict[str, float]) -> list[str]:
    against = [reference, FLOWER] if reference is PLAIN else [reference]
    if entry.title not in outcome.seconds:
        why = "missing" if entry.title in outcome.missing else "failed"
        return [entry.title, why, *[NOTHING] * (5 + len(against))]
    taken = outcome.seconds[entry.title]
    ratios = [number(outcome.ratio(other, entry)) for other in against]
    share = _share(taken, outcome, operations)
    difference = number(differences.get(entry.title))
    return [entry.title, *seconds(Summary.of(taken)), *ratios, number(outcome.peak_mb.get(entry.title)), share, difference]


def _rates(outcome: Outcome) -> dict[str, float]:
    """Operations a second of all cores together, by what they compute."""
    found = {style: outcome.seconds.get(entry.title) for style, entry in RATES.items()}
    return {style: OPERATIONS[style] / Summary.of(taken).median for style, taken in found.items() if taken}


def _share(taken: Sequence[float], outcome: Outcome, operations: int) -> str:
    rates = _rates(outcome)
    return f"{100 * operations / Summary.of(taken).median / max(rates.values()):.0f} %" if rates else NOTHING


def _peak(outcome: Outcome) -> str:
    rates = ", ".join(f"{TITLES[style]} {rate / 1e9:.0f}" for style, rate in _rates(outcome).items())
    return (
        f"The peak is the faster of what torch itself reached in the same sweeps, one thread on each core, in billions of additions and "
        f"multiplications a second (float32): {rates}. It is no limit of the hardware."
    )


def _description(workload: Workload, facts: dict[str, int]) -> str:
    amount, epochs = local_work(workload.J)
    shape = "x".join(map(str, workload.shape))
    clients = f"{workload.cohort} of {workload.clients} clients" if workload.clients > 1 else "One client"
    augmented = f", augmented by `{workload.augmentation}`" if workload.augmentation != "none" else ""
    return (
        f"{clients} with {workload.size} images of {shape}{augmented}, {amount} {'epochs' if epochs else 'steps'} in batches of "
        f"{workload.batch}; SGD with momentum {workload.momentum:g} and weight decay {workload.weight_decay:g}; `{workload.model}` with "
        f"{facts['weights']:,} weights. A round needs {facts['round'] / 1e9:.0f} billion additions and multiplications (augmentation not "
        f"counted). {workload.rounds} rounds of each variant, interleaved."
    )
