"""Mean ranks over settings, and which differ by more than Nemenyi's critical difference.

As Demšar (2006) proposes: strategies are ranked within each setting by their means over seeds,
Friedman's test asks whether they differ at all, and Nemenyi's, which holds for all pairs together,
which ones do. Settings are the units here, not seeds. scipy is lazy, since planning imports this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.across import DIGITS, Scores
from cohort.results.intervals import ALPHA

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazy("scipy.stats")

FEWEST_STRATEGIES, FEWEST_SETTINGS = 3, 2  # of Friedman's test


@dataclass(frozen=True)
class Ranking:
    """The mean rank of each strategy, where 1 is the best; Friedman's p-value; the critical
    difference; and the groups of strategies that do not differ, each from its best to its worst."""

    strategies: tuple[str, ...]
    ranks: np.ndarray
    p_value: float
    difference: float
    groups: list[tuple[str, ...]]


def ranking(scores: Scores) -> Ranking | None:
    """Rank the strategies; None if there are too few of them, or too few settings."""
    count, settings = len(scores.strategies), len(scores.settings)
    if count < FEWEST_STRATEGIES or settings < FEWEST_SETTINGS:
        return None
    sign = -1 if scores.better == "high" else 1
    means = scores.means().round(DIGITS)
    ranks = stats.rankdata(sign * means, axis=0).mean(axis=1)
    is_tied = bool((means == means[0]).all())
    p_value = 1.0 if is_tied else float(stats.friedmanchisquare(*means).pvalue)
    difference = critical_difference(count, settings)
    limit = difference if p_value <= ALPHA else math.inf
    return Ranking(scores.strategies, ranks, p_value, difference, _groups(scores, ranks, limit))


def critical_difference(strategies: int, settings: int) -> float:
    """The difference of two mean ranks from which on they differ, by Nemenyi's test at 5 %."""
    quantile = float(stats.studentized_range.ppf(1 - ALPHA, strategies, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(strategies * (strategies + 1) / (6 * settings))


def _groups(scores: Scores, ranks: np.ndarray, limit: float) -> list[tuple[str, ...]]:
    """The largest groups of at least two strategies whose mean ranks lie within the limit."""
    order = np.argsort(ranks, kind="stable")
    groups, covered = [], 0
    for first in range(len(order)):
        last = max(
            index
            for index in range(first, len(order))
            if ranks[order[index]] - ranks[order[first]] < limit
        )
        if last > first and last >= covered:
            groups.append(tuple(scores.strategies[index] for index in order[first : last + 1]))
            covered = last + 1
    return groups
