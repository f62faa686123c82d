"""The table of a contest: times, speedups, memory, share of the machine's peak, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.contest import RATES, Entry, Outcome, differences_to
from benchmarks.rates import OPERATIONS, TITLES
from benchmarks.sweeps import Summary
from benchmarks.tables import NOTHING, number, seconds, table

DIFFERENT = 1e-4  # more than rounding explains


@dataclass(frozen=True)
class Results:
    """A contest's results for display.

    `references` maps column titles to the entries that speedups are relative to, `throughputs` maps
    them to what a unit consists of. If `compared`, each variant's result is also compared with that
    of the first reference.
    """

    outcome: Outcome
    entries: Sequence[Entry]
    references: dict[str, Entry]
    operations: int
    unit: str = "round"
    throughputs: Mapping[str, int] = field(default_factory=dict)
    compared: bool = True
    differences: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        differences = differences_to(self.reference, self.outcome) if self.compared else {}
        object.__setattr__(self, "differences", differences)

    @property
    def reference(self) -> Entry:
        """The entry whose result is the reference."""
        return next(iter(self.references.values()))

    def problems(self) -> list[str]:
        """A sentence for each variant that failed or computed something else."""
        different = {
            title: difference
            for title, difference in self.differences.items()
            if not difference <= DIFFERENT
        }
        return self.outcome.problems() + [
            f"{title}: its result differs from that of '{self.reference.title}' by {number(difference)}"
            for title, difference in different.items()
        ]

    def table(self) -> str:
        """The results as a Markdown table, one row per entry."""
        return table(self._titles(), [self._row(entry) for entry in self.entries])

    def peak(self) -> str:
        """A sentence on PyTorch's highest rates in the same sweeps, one thread per core."""
        rates = ", ".join(
            f"{TITLES[style]} {rate / 1e9:.0f}" for style, rate in self._rates().items()
        )
        return f"Peak, float32 GFLOP/s: {rates}."

    def _titles(self) -> list[str]:
        return [
            "variant",
            f"median s/{self.unit}",
            "min",
            "middle half",
            *self.throughputs,
            *self.references,
            "memory, MB",
            "% of peak",
            "difference",
        ]

    def _row(self, entry: Entry) -> list[str]:
        if entry.title not in self.outcome.seconds:
            why = "not installed" if entry.title in self.outcome.missing else "failed"
            return [entry.title, why, *[NOTHING] * (len(self._titles()) - 2)]
        taken = self.outcome.seconds[entry.title]
        summary = Summary.of(taken)
        throughputs = [number(amount / summary.median) for amount in self.throughputs.values()]
        ratios = [number(self.outcome.ratio(other, entry)) for other in self.references.values()]
        memory = number(self.outcome.peak_mb.get(entry.title))
        difference = number(self.differences.get(entry.title)) if self.compared else "not compared"
        return [
            entry.title,
            *seconds(summary),
            *throughputs,
            *ratios,
            memory,
            self._share(taken),
            difference,
        ]

    def _share(self, taken: Sequence[float]) -> str:
        rates = self._rates()
        return (
            f"{100 * self.operations / Summary.of(taken).median / max(rates.values()):.0f}%"
            if rates
            else NOTHING
        )

    def _rates(self) -> dict[str, float]:
        """FLOP/s of all cores together, by style of operation."""
        seconds_by_style = {
            style: self.outcome.seconds.get(entry.title) for style, entry in RATES.items()
        }
        return {
            style: OPERATIONS[style] / Summary.of(taken).median
            for style, taken in seconds_by_style.items()
            if taken
        }
