"""Strategies compared across settings: interquartile means and win rates.

A setting is everything about a run but its strategy and seed. As in rliable (Agarwal et al., 2021)
the bootstrap is stratified: each resample draws seeds within each setting, and the settings stay.
It is also paired: what it draws it draws for all strategies, whose runs of a seed share shards and
initial weights. Intervals thus say what other seeds would change, not what other settings would.

Planning imports this module, so pandas is lazy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core.errors import UserError
from cohort.core.lazy import lazy
from cohort.results.intervals import ALPHA
from cohort.results.names import Names, listed, word
from cohort.results.series import label_columns, label_text, value_per_cell

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame
else:
    pd = lazy("pandas")

RESAMPLES = 5000
QUARTILES = (0.25, 0.75)
DIGITS = 9  # to which values are equal


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; `interval` is None if some setting has a single seed."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Scores:
    """Several strategies' runs: `values` has a row for each strategy and a column for each pair of
    setting and seed that all of them have; `positions` are the columns' settings, by index."""

    strategies: tuple[str, ...]
    settings: tuple[str, ...]
    values: np.ndarray
    positions: np.ndarray
    better: str = "high"

    @classmethod
    def of(cls, table: DataFrame, better: str = "high") -> Scores:
        """Arrange the scores of a table with the columns strategy, setting, seed and value;
        strategies and settings keep the order of their first rows."""
        strategies, settings = (tuple(table[name].unique()) for name in ("strategy", "setting"))
        index = ["setting", "seed"]
        runs = table.pivot(index=index, columns="strategy", values="value")  # raises for duplicates
        runs = runs.reindex(columns=list(strategies)).dropna()
        common = set(runs.index.get_level_values("setting"))
        kept = tuple(setting for setting in settings if setting in common)
        positions = np.array([kept.index(setting) for setting, _ in runs.index], dtype=int)
        order = np.argsort(positions, kind="stable")
        values = runs.to_numpy(dtype=float).T.round(DIGITS)
        return cls(strategies, kept, values[:, order], positions[order], better)

    @property
    def seeds(self) -> np.ndarray:
        """The number of seeds of each setting."""
        return np.bincount(self.positions, minlength=len(self.settings))

    @property
    def merits(self) -> np.ndarray:
        """The values, negated if low ones are better, so that higher merits always are."""
        return self.values if self.better == "high" else -self.values

    def means(self) -> np.ndarray:
        """The mean over seeds: a row for each strategy and a column for each setting."""
        totals = [np.bincount(self.positions, row, len(self.settings)) for row in self.values]
        return np.array(totals).round(DIGITS) / self.seeds

    def weights(self) -> np.ndarray:
        """The weight of each run, so that settings count alike, however many seeds they have."""
        return 1 / (len(self.settings) * self.seeds[self.positions])

    def resampled(self) -> np.ndarray | None:
        """The weights of the runs in each bootstrap resample of the seeds, a row for each; None
        where a setting has a single seed, which tells nothing of other seeds.

        Of n seeds a resample draws n - 1: with n it would understate the variance by a factor of (n
        - 1) / n, which is a third at three seeds.
        """
        if not len(self.settings) or self.seeds.min() < 2:
            return None
        rng = np.random.default_rng(0)
        blocks = [
            rng.multinomial(n - 1, np.full(n, 1 / n), RESAMPLES) / (n - 1) for n in self.seeds
        ]
        return np.hstack(blocks) / len(self.settings)


WITHOUT_HELP = "labels with the value, or the values, whose runs do not count: {partition: iid}"


def values_left_out(without: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The values of labels that a figure or table is to be `without`, as texts."""
    return {
        label: list(map(label_text, values if isinstance(values, list) else [values]))
        for label, values in (without or {}).items()
    }


def check_settings(
    label: str,
    left_out: Mapping[str, list[str]],
    axes: Iterable[str],
    cells: Iterable[Mapping[str, Any]],
) -> None:
    """Raise UserError if no setting of these cells has all compared values of the label; cells with
    a value that is `left_out` do not count. No cells pass."""
    apart = [axis for axis in axes if axis not in (label, "seed")]
    settings: dict[tuple[str, ...], set[str]] = {}
    for cell in cells:
        if any(label_text(cell.get(axis)) in values for axis, values in left_out.items()):
            continue
        setting = tuple(label_text(cell.get(axis)) for axis in apart)
        settings.setdefault(setting, set()).add(label_text(cell.get(label)))
    values = set().union(*settings.values())
    if settings and not any(values <= planned for planned in settings.values()):
        raise UserError(
            f" compares {listed(sorted(values))}, but no setting of its experiment has all of "
            f"them; say in without which values of {label} to leave out"
        )


def runs_by_setting(
    metrics: DataFrame, metric: str, at: int | str, shown: Sequence[str]
) -> DataFrame:
    """The runs that are done or diverged and have a value, one row each, with the columns value,
    `setting` (the values of all labels in which the runs differ but for the `shown` ones and the
    seed) and `apart` (the names of these labels)."""
    cells = value_per_cell(metrics, metric, at)
    labels = [
        label
        for label in label_columns(metrics)
        if label not in (*shown, "seed") and cells[label].nunique() > 1
    ]
    cells = cells.assign(
        setting=cells[labels].agg(", ".join, axis=1) if labels else "",
        apart=listed(list(map(word, labels))) if labels else "",
    )
    return cells[cells["status"].isin(["done", "diverged"])].dropna(subset="value")


def ordered_scores(runs: DataFrame, label: str, names: Names, better: str) -> Scores:
    """The scores of the values of a label, which stand for strategies, in the study's order; `runs`
    are those of `runs_by_setting`."""
    order = names.ordered(label, runs[label])
    table = runs[["setting", "seed", "value"]].assign(strategy=runs[label])
    rank = table["strategy"].map(order.index)
    return Scores.of(table.iloc[rank.argsort(kind="stable")], better)


def estimate_of(value: float, draws: np.ndarray | None) -> Estimate:
    """The value as an Estimate, with the middle 95 % of its resamples `draws`, if there are any."""
    if draws is None:
        return Estimate(value, None)
    low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    return Estimate(value, (float(low), float(high)))


def interquartile_means(scores: Scores) -> dict[str, Estimate]:
    """The interquartile mean of each strategy over all runs, each setting counting alike."""
    weights, resampled = scores.weights(), scores.resampled()
    return {
        strategy: estimate_of(
            float(_interquartile_mean(row, weights[None])[0]),
            None if resampled is None else _interquartile_mean(row, resampled),
        )
        for strategy, row in zip(scores.strategies, scores.values, strict=True)
    }


def rates_ahead_of(baseline: str, scores: Scores) -> dict[str, Estimate]:
    """How often each other strategy is ahead of a baseline: the share of seeds, where a tie is half
    a win, averaged over settings. Without the baseline there are no rates."""
    if baseline not in scores.strategies:
        return {}
    weights, resampled = scores.weights(), scores.resampled()
    base = scores.merits[scores.strategies.index(baseline)]
    rates = {}
    for strategy, merits in zip(scores.strategies, scores.merits, strict=True):
        if strategy != baseline:
            wins = (merits > base) + 0.5 * (merits == base)
            draws = None if resampled is None else resampled @ wins
            rates[strategy] = estimate_of(float(weights @ wins), draws)
    return rates


def _interquartile_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of the middle half of the values, for each row of weights that add up to 1.

    Of a value at a quartile only the part inside counts.
    """
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[:, order], axis=1)
    inside = np.diff(np.clip(ends, *QUARTILES), prepend=QUARTILES[0], axis=1)
    return inside @ values[order] / (QUARTILES[1] - QUARTILES[0])
