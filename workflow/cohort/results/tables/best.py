"""Which results of a table cannot be separated from the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cohort.cell.settings import SHARD_KEYS
from cohort.results.intervals import ENOUGH_SEEDS, Sample, holm, welch
from cohort.results.series import label_columns

if TYPE_CHECKING:
    from pandas import DataFrame

Key = tuple[Any, ...]
CONDITIONS = (*SHARD_KEYS, "model", "panel", "client")
"""The labels of what a run is given, not of what it does with it."""


def inseparable(cells: DataFrame, labels: Sequence[str], better: str) -> set[Key]:
    """The combinations of labels with the best mean, and those that 95 % intervals cannot separate
    from it, among those that differ only in their strategy.

    A table without strategies compares the values of its last label that is no condition: one data
    set is not better than another. Results are paired by seed where they have seeds in common;
    fewer than five runs are too few for a verdict and take no part.
    """
    rivals = [label for label in labels if label not in CONDITIONS]
    if not better or not rivals:
        return set()
    rival = "strategy" if "strategy" in labels else rivals[-1]
    sign, contests = 1 if better == "high" else -1, dict[Key, dict[Key, dict[Key, float]]]()
    rest = [name for name in label_columns(cells) if name not in (*labels, "diverged")]
    known = cells[cells["value"].notna()]
    for key, group in known.groupby(list(labels), sort=False):
        fixed = tuple(value for label, value in zip(labels, key, strict=True) if label != rival)
        runs = group[rest].itertuples(index=False, name=None)
        values = dict(zip(runs, sign * group["value"].astype(float), strict=True))
        if len(values) >= ENOUGH_SEEDS:
            contests.setdefault(fixed, {})[key] = values
    return {key for contest in contests.values() if len(contest) > 1 for key in _winners(contest)}


def _winners(contest: Mapping[Key, Mapping[Key, float]]) -> list[Key]:
    best = max(contest, key=lambda key: Sample.of(list(contest[key].values())).mean)
    others = [key for key in contest if key != best]
    p_values = [_p_value(contest[best], contest[key]) for key in others]
    levels = holm(p_values)
    return [
        best,
        *(
            key
            for key, p_value, level in zip(others, p_values, levels, strict=True)
            if p_value > level
        ),
    ]


def _p_value(first: Mapping[Key, float], second: Mapping[Key, float]) -> float:
    common = [run for run in first if run in second]
    if len(common) > 1:
        return Sample.of([first[run] - second[run] for run in common]).p_value()
    return welch(Sample.of(list(first.values())), Sample.of(list(second.values())))
