"""The table of a contest: times, ratios, memory, part of the machine's peak, differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.contest import RATES, Entry, Outcome, differences_to
from benchmarks.rates import OPERATIONS, TITLES
from benchmarks.sweeps import Summary
from benchmarks.tables import NOTHING, number, seconds, table

DIFFERENT = 1e-4  # a larger difference is none of rounding


@dataclass(frozen=True)
class Results:
    """What is to be shown of a contest: its entries, each against the `references` (column title and entry), and against the answer of the
    first of them where answers are `compared`."""

    outcome: Outcome
    entries: Sequence[Entry]
    references: dict[str, Entry]
    operations: int
    unit: str = "round"
    compared: bool = True
    differences: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        found = differences_to(self.reference, self.outcome) if self.compared else {}
        object.__setattr__(self, "differences", found)

    @property
    def reference(self) -> Entry:
        """The entry that answers are compared with."""
        return next(iter(self.references.values()))

    def complaints(self) -> list[str]:
        """What is missing, failed or different."""
        different = {
            title: found for title, found in self.differences.items() if not found <= DIFFERENT
        }
        return self.outcome.complaints() + [
            f"{title}: its answer differs from that of '{self.reference.title}' by {number(found)}"
            for title, found in different.items()
        ]

    def table(self) -> str:
        """In Markdown."""
        titles = [
            "variant",
            f"s/{self.unit}, median",
            "least",
            "middle half",
            *self.references,
            "memory, MB",
            "of the peak",
            "difference",
        ]
        return table(titles, [self._row(entry) for entry in self.entries])

    def peak(self) -> str:
        """What the peak is."""
        rates = ", ".join(
            f"{TITLES[style]} {rate / 1e9:.0f}" for style, rate in self._rates().items()
        )
        return (
            f"The peak is the faster of what torch itself reached in the same sweeps, one thread on each core, in billions of additions "
            f"and multiplications a second (float32): {rates}. It is no limit of the hardware."
        )

    def _row(self, entry: Entry) -> list[str]:
        if entry.title not in self.outcome.seconds:
            why = "missing" if entry.title in self.outcome.missing else "failed"
            return [entry.title, why, *[NOTHING] * (5 + len(self.references))]
        taken = self.outcome.seconds[entry.title]
        ratios = [number(self.outcome.ratio(other, entry)) for other in self.references.values()]
        memory = number(self.outcome.peak_mb.get(entry.title))
        difference = number(self.differences.get(entry.title)) if self.compared else "not compared"
        return [
            entry.title,
            *seconds(Summary.of(taken)),
            *ratios,
            memory,
            self._share(taken),
            difference,
        ]

    def _share(self, taken: Sequence[float]) -> str:
        rates = self._rates()
        return (
            f"{100 * self.operations / Summary.of(taken).median / max(rates.values()):.0f} %"
            if rates
            else NOTHING
        )

    def _rates(self) -> dict[str, float]:
        """Operations a second of all cores together, by what they compute."""
        found = {style: self.outcome.seconds.get(entry.title) for style, entry in RATES.items()}
        return {
            style: OPERATIONS[style] / Summary.of(taken).median
            for style, taken in found.items()
            if taken
        }
