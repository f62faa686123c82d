"""Compares two strategies seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazy("scipy.stats")

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval, and the number of values; without bounds below two."""

    mean: float
    low: float
    high: float
    n: int

    def word(self, better: Literal["high", "low", ""]) -> str:
        """Whether a mean difference is `better` or `worse` than none, or `undecided`."""
        if not better or not (self.low > 0 or self.high < 0):
            return "undecided"
        return "better" if (self.mean > 0) == (better == "high") else "worse"


def interval(values: np.ndarray) -> Interval:
    """The mean of some values and its interval by Student's t."""
    n = len(values)
    mean = float(values.mean()) if n else float("nan")
    if n < 2:
        return Interval(mean, -float("inf"), float("inf"), n)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def paired(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Interval:
    """The difference ours - theirs, over the seeds that both have."""
    seeds = [seed for seed in ours if seed in theirs]
    return interval(np.array([ours[seed] - theirs[seed] for seed in seeds]))
