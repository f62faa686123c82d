"""Comparisons across settings, against brute force, by hand and against scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cohort.results.across import RESAMPLES, Scores, interquartile_means, rates_ahead_of

STRATEGIES = ("a", "b", "c")


def table(seeds: dict[str, int], seed: int = 0) -> pd.DataFrame:
    """Random values of three strategies; `seeds` is how many runs each setting has."""
    rng = np.random.default_rng(seed)
    rows = [
        (strategy, setting, str(number), rng.normal(50, 20))
        for setting, count in seeds.items()
        for number in range(count)
        for strategy in STRATEGIES
    ]
    return pd.DataFrame(rows, columns=["strategy", "setting", "seed", "value"])


def scores_of(values: np.ndarray, better: str = "high") -> Scores:
    """Scores of an array by strategy, setting and seed."""
    rows = [
        (f"strategy {one}", f"setting {place}", str(seed), value)
        for (one, place, seed), value in np.ndenumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=["strategy", "setting", "seed", "value"])
    return Scores.of(frame, better)


def test_only_seeds_and_settings_that_all_strategies_have() -> None:
    frame = table({"y": 3, "x": 2, "z": 1}).sample(frac=1, random_state=1)
    gone = (frame["strategy"] == "b") & (
        (frame["setting"] == "z") | (frame["setting"] == "y") & (frame["seed"] == "1")
    )
    frame.loc[gone & (frame["setting"] == "z"), "value"] = np.nan
    scores = Scores.of(frame[~gone | (frame["setting"] == "z")])
    assert set(scores.settings) == {"x", "y"}
    assert dict(zip(scores.settings, scores.seeds, strict=True)) == {"x": 2, "y": 2}
    row = scores.values[scores.strategies.index("b")]
    for setting, seeds in (("x", ["0", "1"]), ("y", ["0", "2"])):
        mine = frame[(frame["strategy"] == "b") & (frame["setting"] == setting)]
        expected = mine[mine["seed"].isin(seeds)].sort_values("seed")["value"]
        index = scores.settings.index(setting)
        np.testing.assert_allclose(row[scores.positions == index], expected)


def test_two_runs_of_one_seed_are_an_error() -> None:
    frame = table({"x": 2})
    with pytest.raises(ValueError, match="duplicate"):
        Scores.of(pd.concat([frame, frame.head(1)]))


def test_the_interquartile_mean_is_scipys() -> None:
    """Four settings of three seeds: a quarter of twelve runs is three whole ones."""
    values = np.random.default_rng(0).normal(size=(2, 4, 3))
    result = interquartile_means(scores_of(values))
    for estimate, runs in zip(result.values(), values, strict=True):
        assert estimate.value == pytest.approx(stats.trim_mean(runs.ravel(), 0.25))


def test_settings_count_alike_whatever_their_seeds() -> None:
    """With every run of three settings repeated until each has 60, scipy trims whole runs."""
    frame = table({"x": 3, "y": 5, "z": 4})
    result = interquartile_means(Scores.of(frame))
    assert tuple(result) == STRATEGIES
    for strategy, estimate in result.items():
        mine = frame[frame["strategy"] == strategy]
        repeated = [
            np.repeat(group["value"], 60 // len(group)) for _, group in mine.groupby("setting")
        ]
        assert estimate.value == pytest.approx(stats.trim_mean(np.concatenate(repeated), 0.25))


def test_the_bootstrap_is_that_of_all_resamples() -> None:
    """Three settings of two seeds: a resample is one of eight choices of a seed in each setting."""
    values = np.random.default_rng(3).normal(size=(2, 3, 2))
    scores = scores_of(values)
    weights = scores.resampled
    assert weights is not None
    choices = list(itertools.product(range(2), repeat=3))
    counts = dict.fromkeys(choices, 0)
    for row in weights.reshape(RESAMPLES, 3, 2):
        np.testing.assert_allclose(row.sum(axis=1), 1 / 3)
        counts[tuple(row.argmax(axis=1))] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    means = []
    for choice in choices:
        runs = np.array([values[0, index, seed] for index, seed in enumerate(choice)])
        means.append(stats.trim_mean(np.repeat(runs, 4), 0.25))
    result = interquartile_means(scores)["strategy 0"]
    low, high = result.interval or (np.nan, np.nan)
    assert (low, high) == pytest.approx((min(means), max(means)))


def test_a_single_seed_in_some_setting_gives_no_interval() -> None:
    scores = Scores.of(table({"x": 3, "y": 1}))
    assert all(estimate.interval is None for estimate in interquartile_means(scores).values())
    assert all(rate.interval is None for rate in rates_ahead_of("a", scores).values())


def test_an_interval_covers_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 studies of twelve equal settings with three seeds, whose mean is the interquartile
    mean. With three seeds in a resample, not two, 90 % of intervals would cover it."""
    monkeypatch.setattr("cohort.results.across.RESAMPLES", 1000)
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        (result,) = interquartile_means(scores_of(rng.normal(size=(1, 12, 3)))).values()
        low, high = result.interval or (np.inf, np.inf)
        covered += low <= 0 <= high
    assert 0.92 <= covered / 300 <= 0.98


@pytest.mark.parametrize("better", ["high", "low"])
def test_win_rates_by_brute_force(better: str) -> None:
    frame = table({"x": 3, "y": 5}).round({"value": -1})  # tens, so that there are ties
    scores = Scores.of(frame, better)
    sign = 1 if better == "high" else -1
    runs = {tuple(row[:3]): sign * row[3] for row in frame.itertuples(index=False)}
    ties = 0
    for one, other in itertools.permutations(STRATEGIES, 2):
        shares = []
        for setting, count in (("x", 3), ("y", 5)):
            wins = 0.0
            for seed in map(str, range(count)):
                apart = runs[one, setting, seed] - runs[other, setting, seed]
                wins += 0.5 if apart == 0 else float(apart > 0)
                ties += apart == 0
            shares.append(wins / count)
        rate = rates_ahead_of(other, scores)[one]
        assert rate.value == pytest.approx(np.mean(shares))
    assert ties > 0


def test_the_interval_of_a_win_rate_is_paired() -> None:
    """Ahead by a little in every seed, of which the spread is large: never behind."""
    base = np.random.default_rng(0).normal(0, 10, size=(4, 5))
    rates = rates_ahead_of("strategy 1", scores_of(np.stack([base + 0.1, base])))
    assert rates["strategy 0"].interval == pytest.approx((1, 1))
    assert rates_ahead_of("fedavg", scores_of(np.stack([base + 0.1, base]))) == {}
