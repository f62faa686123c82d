"""Measure variants on one workload: each alone (memory and result), then all in turns (time)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.machine import cores
from benchmarks.peers import PEERS, ROOT, environment, python_of
from benchmarks.processes import Failed, Workers, time_interleaved, times_faster

DIFFERENT = 1e-4  # of the largest weight: more than rounding explains


@dataclass(frozen=True)
class Entry:
    """One variant: title, module under benchmarks.variants, processes, options and source tree."""

    title: str
    module: str
    processes: int = 1
    options: tuple[str, ...] = ()
    tree: Path = ROOT

    @property
    def peer(self) -> str | None:
        """The peer whose virtual environment the variant needs; None if it runs in ours."""
        return self.module if self.module in PEERS else None

    def live(self, folder: Path) -> Workers:
        """Start the variant's processes, ready to work on the workload drawn into `folder`."""
        python = python_of(self.peer) if self.peer else Path(sys.executable)
        module = f"benchmarks.variants.{self.module}"
        command = [str(python), "-m", module, str(folder), *self.options]
        log = folder / f"{self.module}.log"
        return Workers([command] * self.processes, environment(self.tree), log, self.tree)


ONE_THREAD = ("--threads", "1")
OURS = Entry("ours, one process", "ours")
OURS_PER_MACHINE = Entry(f"ours, {cores()} processes", "ours", cores())
SERIAL = Entry("ours, the serial trainer", "ours", options=("--trainer", "serial"))
PLAIN = Entry("plain loop", "plain")
PLAIN_ONE_THREAD = Entry("plain loop, one thread", "plain", options=ONE_THREAD)
EAGER = Entry(
    "plain loop without DataLoader, one thread", "plain", options=(*ONE_THREAD, "--style", "eager")
)
FLOWER, PFL = (Entry(PEERS[name], name) for name in ("flower", "pfl"))
BLAZEFL, BLAZEFL_THREADS = (
    Entry(f"BlazeFL, {cores()} {style}", "blazefl", options=(*ONE_THREAD, "--style", style))
    for style in ("processes", "threads")
)


@dataclass
class Outcome:
    """Measurements of a contest by entry title.

    `seconds` has one value per sweep, `answers` the result of the first round, `failed` the reason.
    """

    seconds: dict[str, list[float]] = field(default_factory=dict)
    peak_mb: dict[str, float] = field(default_factory=dict)
    answers: dict[str, np.ndarray] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def ratio(self, reference: Entry, ours: Entry) -> float | None:
        """Speedup of `ours` over the reference; None if either was not measured."""
        theirs, own = (self.seconds.get(entry.title) for entry in (reference, ours))
        return times_faster(theirs, own) if theirs and own else None

    def differences(self, reference: str) -> dict[str, float]:
        """How far each variant's result is from the reference's, by title."""
        others = {title: answer for title, answer in self.answers.items() if title != reference}
        answer = self.answers.get(reference)
        if answer is None:
            return {}
        return {title: largest_difference(other, answer) for title, other in others.items()}

    def problems(self) -> list[str]:
        """A sentence for each variant that failed."""
        return [f"{title}: failed, {reason}" for title, reason in self.failed.items()]


def contest(entries: Sequence[Entry], folder: Path, rounds: int, *, alone: bool = True) -> Outcome:
    """Measure variants on the workload drawn into a folder, `rounds` sweeps each.

    A peer that is not installed is left out. Without `alone`, only the time is measured: not the
    memory, and no results to compare.
    """
    outcome = Outcome(
        missing=[entry.title for entry in entries if entry.peer and python_of(entry.peer) is None]
    )
    for title in outcome.missing:
        print(f"    {title}: not installed, left out (make bench-peers)", file=sys.stderr)
    available = [entry for entry in entries if entry.title not in outcome.missing]
    for entry in available if alone else ():
        _measure_alone(entry, folder, outcome)
    with ExitStack() as stack:
        variants = {}
        for entry in available:
            try:
                if entry.title not in outcome.failed:
                    variants[entry.title] = stack.enter_context(entry.live(folder))
            except Failed as error:
                outcome.failed[entry.title] = str(error)
        outcome.seconds, failed = time_interleaved(variants, rounds)
        outcome.failed |= failed
    return outcome


def largest_difference(answer: np.ndarray, reference: np.ndarray) -> float:
    """The maximum absolute difference divided by the largest absolute reference value."""
    if answer.shape != reference.shape:
        return float("inf")
    return float(np.abs(answer - reference).max() / np.abs(reference).max())


def _measure_alone(entry: Entry, folder: Path, outcome: Outcome) -> None:
    """Run a variant's round for the result and one for peak memory; put both into `outcome`.

    Nothing else runs, because the proportional set size counts pages shared with other variants
    only in part.
    """
    print(f"    {entry.title}, alone", file=sys.stderr, flush=True)
    try:
        with entry.live(folder) as live:
            live.run()
            outcome.answers[entry.title] = live.answer(folder / "answer.npy")
            outcome.peak_mb[entry.title] = live.peak_mb()
    except Failed as error:
        outcome.failed[entry.title] = str(error)
