"""Intervals of means by Student's t, and Holm's correction for several of them.

Planning imports this module, so scipy is lazy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

ALPHA = 0.05


@dataclass(frozen=True)
class Sample:
    """The mean and the standard deviation (with n - 1) of n values, one per run or per pair."""

    n: int
    mean: float
    sd: float

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> Sample:
        """Of some values, or of one, whose standard deviation is not known."""
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
        n = len(array)
        mean = float(array.mean()) if n else math.nan
        sd = float(array.std(ddof=1)) if n > 1 else math.nan
        return cls(n, mean, 0.0 if n > 1 and np.ptp(array) == 0 else sd)

    def half_width(self, level: float = ALPHA) -> float:
        """How far the interval of confidence 1 - `level` reaches to each side of the mean."""
        if self.n < 2:
            return math.inf
        return float(special.stdtrit(self.n - 1, 1 - level / 2)) * self.sd / math.sqrt(self.n)

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of confidence 1 - `level` for the mean."""
        half = self.half_width(level)
        return self.mean - half, self.mean + half

    def word(self, better: Literal["high", "low", ""]) -> str:
        """Whether a mean difference is `better` or `worse` than none, or `undecided`."""
        low, high = self.interval()
        if not better or not (low > 0 or high < 0):
            return "undecided"
        return "better" if (self.mean > 0) == (better == "high") else "worse"

    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that the mean is 0."""
        if self.n < 2 or self.mean == 0:
            return 1.0
        if self.sd == 0:
            return 0.0
        t = abs(self.mean) / self.sd * math.sqrt(self.n)
        return 2 * float(special.stdtr(self.n - 1, -t))


def paired(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Sample:
    """The differences ours - theirs, over the seeds that both have."""
    return Sample.of([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level at which Holm's procedure tests each hypothesis, so that all decisions together
    are wrong with a probability of at most `alpha`.

    A hypothesis is rejected if its p-value is at most its level: an interval of confidence
    1 - level around its mean then lies on one side of 0.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels, last = [alpha] * len(p_values), 0.0  # the level of the first that is not rejected
    for rank, place in enumerate(order):
        levels[place] = last or alpha / (len(p_values) - rank)
        if not last and p_values[place] > levels[place]:
            last = levels[place]
    return levels


def signs(samples: Sequence[Sample], alpha: float = ALPHA) -> list[int]:
    """On which side of 0 each mean lies: 1 or -1, or 0 where Holm's procedure cannot say."""
    p_values = [sample.p_value() for sample in samples]
    return [
        int(np.sign(sample.mean)) if p_value <= level else 0
        for sample, p_value, level in zip(samples, p_values, holm(p_values, alpha), strict=True)
    ]


def welch(first: Sample, second: Sample) -> float:
    """The two-sided p-value of the hypothesis that two independent samples have one mean."""
    if min(first.n, second.n) < 2 or first.mean == second.mean:
        return 1.0
    one, other = first.sd**2 / first.n, second.sd**2 / second.n
    if one + other == 0:
        return 0.0
    freedom = (one + other) ** 2 / (one**2 / (first.n - 1) + other**2 / (second.n - 1))
    t = abs(first.mean - second.mean) / math.sqrt(one + other)
    return 2 * float(special.stdtr(freedom, -t))
