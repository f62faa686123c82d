"""Variants against each other on one workload: first each alone, for its memory and its answer, then all side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.machine import cores
from benchmarks.peers import PEERS, ROOT, environment, python_of
from benchmarks.processes import Failed, Live
from benchmarks.rates import OPERATIONS
from benchmarks.sweeps import interleaved, times_faster


@dataclass(frozen=True)
class Entry:
    """A variant: its name in the table, its module, how many processes of it there are, its options, and the peer that it needs."""

    title: str
    module: str
    processes: int = 1
    options: tuple[str, ...] = ()
    tree: Path = ROOT

    @property
    def peer(self) -> str | None:
        """The environment that it needs, if it is not our own."""
        return self.module if self.module in PEERS else None

    def live(self, folder: Path) -> Live:
        """It at work on what lies in a folder."""
        python = python_of(self.peer) if self.peer else Path(sys.executable)
        command = [
            str(python),
            "-m",
            f"benchmarks.variants.{self.module}",
            str(folder),
            *self.options,
        ]
        log = folder / f"{self.module}.log"
        return Live([command] * self.processes, environment(self.tree), log, self.tree)


ONE_THREAD = ("--threads", "1")
OURS = Entry("ours, one process", "ours")
OURS_PER_MACHINE = Entry(f"ours, {cores()} processes", "ours", cores())
SERIAL, BATCHED = (
    Entry(f"ours, the {name} trainer", "ours", options=("--trainer", name))
    for name in ("serial", "batched")
)
PLAIN = Entry("plain loop", "plain")
PLAIN_ONE_THREAD = Entry("plain loop, one thread", "plain", options=ONE_THREAD)
FLOWER, PFL, FEDLAB = (Entry(title, module) for module, title in PEERS.items())
PFL_ONE_THREAD = Entry("pfl, one thread", "pfl", options=ONE_THREAD)
RATES = {style: Entry(style, "rate", cores(), ("--style", style)) for style in OPERATIONS}


@dataclass
class Outcome:
    """What was measured of each variant, by its title: seconds of each round, memory, what came of its first round, why it failed."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    answers: dict[str, np.ndarray] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def ratio(self, reference: Entry, ours: Entry) -> float | None:
        """How many times as long the reference takes."""
        theirs, own = (self.seconds.get(entry.title) for entry in (reference, ours))
        return times_faster(theirs, own) if theirs and own else None

    def memory_ratio(self, ours: Entry, reference: Entry) -> float | None:
        """Our memory as a part of the reference's."""
        own, theirs = (self.peak_mb.get(entry.title) for entry in (ours, reference))
        return own / theirs if own and theirs else None

    def complaints(self) -> list[str]:
        """What is not as it should be."""
        missing = [f"{title}: missing; `make bench-peers` installs it" for title in self.missing]
        return missing + [f"{title}: failed, {reason}" for title, reason in self.failed.items()]


def contest(
    entries: Sequence[Entry], folder: Path, rounds: int, *, weighed: bool = True
) -> Outcome:
    """Measure the variants on the work that lies in a folder."""
    outcome = Outcome(
        missing=[entry.title for entry in entries if entry.peer and python_of(entry.peer) is None]
    )
    there = [entry for entry in entries if entry.title not in outcome.missing]
    for entry in there:
        if weighed and entry not in RATES.values():
            _alone(entry, folder, outcome)
    _side_by_side(
        [entry for entry in there if entry.title not in outcome.failed], folder, rounds, outcome
    )
    return outcome


def differences_to(reference: Entry, outcome: Outcome) -> dict[str, float]:
    """How far the answer of each variant is from the reference's."""
    if reference.title not in outcome.answers:
        return {}
    answer = outcome.answers[reference.title]
    return {
        title: largest_difference(other, answer)
        for title, other in outcome.answers.items()
        if title != reference.title
    }


def largest_difference(answer: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference of two rows of numbers, as a part of the largest number of the reference."""
    return (
        float(np.abs(answer - reference).max() / np.abs(reference).max())
        if answer.shape == reference.shape
        else float("inf")
    )


def _alone(entry: Entry, folder: Path, outcome: Outcome) -> None:
    """One round for its answer, one more for its memory; alone, because processes share what they have loaded."""
    _tell(f"{entry.title}, alone")
    try:
        with entry.live(folder) as live:
            live.go()
            outcome.answers[entry.title] = live.answer(folder / "answer.npy")
            outcome.peak_mb[entry.title] = live.peak_mb()
    except Failed as error:
        outcome.failed[entry.title] = str(error)


def _side_by_side(entries: Sequence[Entry], folder: Path, rounds: int, outcome: Outcome) -> None:
    with ExitStack() as stack:
        variants = {}
        for entry in entries:
            try:
                variants[entry.title] = stack.enter_context(entry.live(folder))
            except Failed as error:
                outcome.failed[entry.title] = str(error)
        outcome.seconds, failed = interleaved(variants, rounds, _tell)
        outcome.failed |= failed


def _tell(text: str) -> None:
    print(f"    {text}", file=sys.stderr, flush=True)
