"""One round of each variant in random order, again and again, so that whatever slows the machine down slows all of them down."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.processes import Failed, Variant

Seconds = Sequence[float]


@dataclass(frozen=True)
class Summary:
    """The median, the least, and between which values the middle half lies."""

    median: float
    least: float
    quarters: tuple[float, float]

    @classmethod
    def of(cls, values: Seconds) -> Summary:
        """Of some values."""
        quarters = (
            statistics.quantiles(values, n=4, method="inclusive")
            if len(values) > 1
            else [values[0]] * 3
        )
        return cls(statistics.median(values), min(values), (quarters[0], quarters[2]))


def interleaved(
    variants: Mapping[str, Variant],
    rounds: int,
    tell: Callable[[str], None] = lambda text: None,
    *,
    warm: bool = True,
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The seconds of each variant, as many of each, and why some failed. A first round of each is not counted, where they
    are to be `warm`."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    failures: dict[str, str] = {}
    for sweep in range(0 if warm else 1, rounds + 1):
        order = [name for name in variants if name not in failures]
        random.shuffle(order)
        for name in order:
            try:
                taken = variants[name].go()
            except Failed as error:
                failures[name] = str(error)
                seconds.pop(name)
            else:
                if sweep:
                    seconds[name].append(taken)
        tell(f"sweep {sweep} of {rounds}")
    return seconds, failures


def times_faster(reference: Seconds, ours: Seconds) -> float:
    """How many times as long the reference took: the median over sweeps, each compared within itself."""
    return statistics.median(slow / fast for slow, fast in zip(reference, ours, strict=True))
