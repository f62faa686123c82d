"""Interleaved timing: each sweep runs every variant once in random order.

A busy machine then slows all variants alike, and ratios are taken within a sweep.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.processes import Failed, Variant

Seconds = Sequence[float]


@dataclass(frozen=True)
class Summary:
    """Median, minimum and quartiles of seconds."""

    median: float
    minimum: float
    quarters: tuple[float, float]

    @classmethod
    def of(cls, values: Seconds) -> Summary:
        """Summarize at least one value."""
        quarters = (
            statistics.quantiles(values, n=4, method="inclusive")
            if len(values) > 1
            else [values[0]] * 3
        )
        return cls(statistics.median(values), min(values), (quarters[0], quarters[2]))


def time_interleaved(
    variants: Mapping[str, Variant],
    rounds: int,
    log: Callable[[str], None] = lambda text: None,
    *,
    warm: bool = True,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Time `rounds` sweeps; return the seconds of each variant and the reason of each failure.

    With `warm`, one more sweep runs first and is not counted. A variant that fails is left out.
    """
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    failures: dict[str, str] = {}
    for sweep in range(0 if warm else 1, rounds + 1):
        order = [name for name in variants if name not in failures]
        random.shuffle(order)
        for name in order:
            try:
                taken = variants[name].run()
            except Failed as error:
                failures[name] = str(error)
                seconds.pop(name)
            else:
                if sweep:
                    seconds[name].append(taken)
        log(f"sweep {sweep} of {rounds}")
    return seconds, failures


def times_faster(reference: Seconds, ours: Seconds) -> float:
    """Speedup over the reference: the median over sweeps of the ratio within each sweep."""
    return statistics.median(slow / fast for slow, fast in zip(reference, ours, strict=True))
