"""The standings of strategies over settings.

As Demšar (2006) proposes: strategies are ranked within each setting by their means over seeds,
Friedman's test asks whether they differ at all, and Nemenyi's, which holds for all pairs together,
which ones do. Settings are the units here, not seeds. The interval of a standing says what other
seeds would change. scipy is lazy, since planning imports this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.across import (
    DIGITS,
    Estimate,
    Scores,
    estimate_of,
    interquartile_means,
    rates_ahead_of,
)
from cohort.results.intervals import ALPHA, Sample
from cohort.results.measure import BASELINE

if TYPE_CHECKING:
    from pandas import DataFrame
    from scipy import stats
else:
    stats = lazy("scipy.stats")

FEWEST_STRATEGIES, FEWEST_SETTINGS = 3, 2  # of Friedman's test


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A strategy among all others: its `rank` by the mean rank over settings, with the interval of
    the rank over seeds; the interquartile mean of its runs; how often it is `ahead` of FedAvg, and
    its `difference` from it in each seed, averaged over settings.

    `leads` says that Nemenyi's test does not tell it apart from the first; of too few strategies or
    settings for that test nobody leads.
    """

    strategy: str
    rank: Estimate
    mean_rank: float
    score: Estimate
    ahead: Estimate | None
    leads: bool
    difference: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The standings of all strategies, the best first, and what their ranks rest on: `settings`
    that differ in `apart`, with so many `runs` of each strategy; `left_out` are runs of seeds that
    not all strategies have. `p_value` is Friedman's; None if there are too few to test."""

    entries: list[Standing]
    settings: int
    apart: str
    runs: int
    left_out: int
    p_value: float | None

    @property
    def no_ranking(self) -> str:
        """A sentence if the order of the strategies is no ranking; else empty."""
        if self.p_value is None or self.p_value <= ALPHA:
            return ""
        return (
            "No ranking: over these settings Friedman's test finds no difference between the "
            f"strategies (p = {self.p_value:.3f})."
        )


def standings_of(scores: Scores, runs: DataFrame) -> Standings:
    """The standings of all strategies by their scores, which are those of these runs."""
    return Standings(
        entries=_entries(scores, runs) if scores.settings else [],
        settings=len(scores.settings),
        apart=str(runs["apart"].iloc[0]) if len(runs) else "",
        runs=scores.values.shape[1],
        left_out=len(runs) - scores.values.size,
        p_value=friedman_p(scores),
    )


def friedman_p(scores: Scores) -> float | None:
    """Friedman's p-value; None if there are too few strategies or settings for the test."""
    means = scores.means().round(DIGITS)
    if len(means) < FEWEST_STRATEGIES or len(scores.settings) < FEWEST_SETTINGS:
        return None
    is_tied = bool((means == means[0]).all())
    return 1.0 if is_tied else float(stats.friedmanchisquare(*means).pvalue)


def leaders(scores: Scores) -> set[str]:
    """The strategies that Nemenyi's test does not tell apart from the first, which are all if
    Friedman's finds no difference; none if there are too few for a test."""
    p_value = friedman_p(scores)
    if p_value is None:
        return set()
    behind = _mean_ranks(scores.means(), scores)
    behind -= behind.min()
    limit = critical_difference(len(behind), len(scores.settings)) if p_value <= ALPHA else math.inf
    return {name for name, gap in zip(scores.strategies, behind, strict=True) if gap < limit}


def critical_difference(strategies: int, settings: int) -> float:
    """The smallest difference of two mean ranks that is significant, by Nemenyi's test at 5 %."""
    quantile = float(stats.studentized_range.ppf(1 - ALPHA, strategies, np.inf)) / math.sqrt(2)
    return quantile * math.sqrt(strategies * (strategies + 1) / (6 * settings))


def _entries(scores: Scores, runs: DataFrame) -> list[Standing]:
    mean_ranks = _mean_ranks(scores.means(), scores)
    ranks, resampled = _positions(mean_ranks), _resampled_ranks(scores)
    leading, quartile_means = leaders(scores), interquartile_means(scores)
    rates = rates_ahead_of(BASELINE, scores)
    differences = _differences(runs[runs["setting"].isin(scores.settings)])
    rows = [
        Standing(
            strategy=strategy,
            rank=estimate_of(float(ranks[row]), None if resampled is None else resampled[:, row]),
            mean_rank=float(mean_ranks[row]),
            score=quartile_means[strategy],
            ahead=rates.get(strategy),
            leads=strategy in leading,
            difference=differences.get(strategy),
        )
        for row, strategy in enumerate(scores.strategies)
    ]
    return sorted(rows, key=lambda entry: entry.rank.value)


def _differences(runs: DataFrame) -> dict[str, Estimate]:
    """The mean difference of each other strategy from FedAvg over the seeds that all strategies
    have in all settings, for each of which it is averaged over settings."""
    table = runs.pivot(index="seed", columns=["strategy", "setting"], values="value").dropna()
    means = table.T.groupby(level="strategy").mean().T
    if BASELINE not in means or means.empty:
        return {}
    differences = {}
    for name, values in means.drop(columns=BASELINE).sub(means[BASELINE], axis=0).items():
        sample = Sample.of(values.to_numpy())
        interval = sample.interval() if sample.n > 1 else None
        differences[str(name)] = Estimate(sample.mean, interval)
    return differences


def _resampled_ranks(scores: Scores) -> np.ndarray | None:
    """The rank of each strategy (columns) in each resample of the seeds (rows)."""
    weights = scores.resampled()
    if weights is None:
        return None
    by_setting = [scores.positions == setting for setting in range(len(scores.settings))]
    means = [weights[:, columns] @ scores.values[:, columns].T for columns in by_setting]
    return _positions(_mean_ranks(np.stack(means, axis=-1), scores))


def _mean_ranks(means: np.ndarray, scores: Scores) -> np.ndarray:
    """The rank of each strategy by its means, averaged over settings, the last axis."""
    sign = -1 if scores.better == "high" else 1
    return stats.rankdata(sign * means.round(DIGITS), axis=-2).mean(axis=-1)


def _positions(mean_ranks: np.ndarray) -> np.ndarray:
    """The position of each strategy, the last axis, from 1; equal mean ranks share the better."""
    return stats.rankdata(mean_ranks.round(DIGITS), "min", axis=-1)
