"""Which results cannot be separated from the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cohort.cell.settings import SHARD_KEYS
from cohort.results.intervals import ENOUGH_SEEDS, Sample, holm_levels, paired_differences, welch_p
from cohort.results.measure import CLIENT

CONDITIONS = (*SHARD_KEYS, "model", "panel", CLIENT)
"""The labels of what a run is given, not of what it does with it."""

Key = tuple[str, ...]
"""The values of a result's labels."""
Runs = dict[str, float]
"""The value of each run of a result, by its seed."""


def best_keys(results: Mapping[Key, Runs], labels: Sequence[str], better: str) -> set[Key]:
    """The keys of the results with the best mean, and of those that 95 % intervals cannot separate
    from it, among results that differ only in their strategy.

    Results without strategies compete along their last label that is no condition: one data set is
    not better than another. They are paired by seed where they have seeds in common; fewer than
    five runs are too few for a verdict and take no part.
    """
    rivals = [label for label in labels if label not in CONDITIONS]
    if not better or not rivals:
        return set()
    rival = labels.index("strategy" if "strategy" in labels else rivals[-1])
    contests: dict[Key, dict[Key, Runs]] = {}
    for key, runs in results.items():
        if len(runs) >= ENOUGH_SEEDS:
            contests.setdefault(key[:rival] + key[rival + 1 :], {})[key] = runs
    sign = 1 if better == "high" else -1
    winners = [_winners(contest, sign) for contest in contests.values() if len(contest) > 1]
    return set[Key]().union(*winners)


def _winners(contest: Mapping[Key, Runs], sign: int) -> set[Key]:
    best = max(contest, key=lambda key: sign * Sample.of(list(contest[key].values())).mean)
    others = [key for key in contest if key != best]
    p_values = [_p_value(contest[best], contest[key]) for key in others]
    tested = zip(others, p_values, holm_levels(p_values), strict=True)
    return {best, *(key for key, p_value, level in tested if p_value > level)}


def _p_value(first: Runs, second: Runs) -> float:
    differences = paired_differences(first, second)
    if differences.n > 1:
        return differences.p_value()
    return welch_p(Sample.of(list(first.values())), Sample.of(list(second.values())))
