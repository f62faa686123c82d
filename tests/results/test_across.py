"""Comparisons across settings, against brute force, by hand, Demšar's paper and scipy."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cohort.results import statistics
from cohort.results.statistics import Scores, friedman_p, leaders

STRATEGIES = ("a", "b", "c")
NAMES = ["strategy", "setting", "seed", "value"]


def table(seeds: dict[str, int], seed: int = 0) -> pd.DataFrame:
    """Random values of three strategies; `seeds` is how many runs each setting has."""
    rng = np.random.default_rng(seed)
    rows = [
        (strategy, setting, str(number), rng.normal(50, 20))
        for setting, count in seeds.items()
        for number in range(count)
        for strategy in STRATEGIES
    ]
    return pd.DataFrame(rows, columns=NAMES)


def scores_of(values: np.ndarray, better: str = "high") -> Scores:
    """Scores of an array by strategy, setting and seed."""
    rows = [
        (f"strategy {strategy}", f"setting {setting}", str(seed), value)
        for (strategy, setting, seed), value in np.ndenumerate(values)
    ]
    return Scores.of(pd.DataFrame(rows, columns=NAMES), better)


def test_without_any_run() -> None:
    assert Scores.of(pd.DataFrame(columns=NAMES)).strategies == ()


def test_only_seeds_and_settings_that_all_strategies_have() -> None:
    frame = table({"y": 3, "x": 2, "z": 1}).sample(frac=1, random_state=1)
    is_b, is_z = frame["strategy"] == "b", frame["setting"] == "z"
    frame.loc[is_b & is_z, "value"] = np.nan
    frame = frame[~(is_b & (frame["setting"] == "y") & (frame["seed"] == "1"))]
    scores = Scores.of(frame)
    assert dict(zip(scores.settings, scores.seeds, strict=True)) == {"x": 2, "y": 2}
    row = scores.values[scores.strategies.index("b")]
    for setting, seeds in (("x", ["0", "1"]), ("y", ["0", "2"])):
        own = frame[(frame["strategy"] == "b") & (frame["setting"] == setting)]
        expected = own[own["seed"].isin(seeds)].sort_values("seed")["value"]
        index = scores.settings.index(setting)
        np.testing.assert_allclose(row[scores.positions == index], expected)
    with pytest.raises(ValueError, match="duplicate"):  # two runs of one seed
        Scores.of(pd.concat([frame, frame.head(1)]))


def test_the_bootstrap_is_that_of_all_resamples() -> None:
    """Three settings of two seeds: a resample is one of eight choices of a seed in each setting."""
    values = np.random.default_rng(3).normal(size=(2, 3, 2))
    scores = scores_of(values)
    weights = scores.resampled
    assert weights is not None
    choices = list(itertools.product(range(2), repeat=3))
    counts = dict.fromkeys(choices, 0)
    for row in weights.reshape(statistics.RESAMPLES, 3, 2):
        np.testing.assert_allclose(row.sum(axis=1), 1 / 3)
        counts[tuple(row.argmax(axis=1))] += 1
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    means = []
    for choice in choices:
        runs = np.array([values[0, index, seed] for index, seed in enumerate(choice)])
        means.append(runs.mean())
    result = scores.estimate(partial(np.dot, b=scores.values[0]))
    assert result.interval == pytest.approx((min(means), max(means)))


def test_a_single_seed_in_some_setting_gives_no_interval() -> None:
    scores = Scores.of(table({"x": 3, "y": 1}))
    assert all(rate.interval is None for rate in statistics.rates_ahead_of("a", scores).values())


@pytest.mark.parametrize("better", ["high", "low"])
def test_win_rates_by_brute_force(better: str) -> None:
    frame = table({"x": 3, "y": 5}).round({"value": -1})  # tens, so that there are ties
    scores = Scores.of(frame, better)
    sign = 1 if better == "high" else -1
    runs = {tuple(row[:3]): sign * row[3] for row in frame.itertuples(index=False)}
    ties = 0
    for strategy, other in itertools.permutations(STRATEGIES, 2):
        shares = []
        for setting, count in (("x", 3), ("y", 5)):
            seeds = map(str, range(count))
            gaps = [runs[strategy, setting, seed] - runs[other, setting, seed] for seed in seeds]
            shares.append(sum(0.5 if gap == 0 else float(gap > 0) for gap in gaps) / count)
            ties += gaps.count(0)
        assert statistics.rates_ahead_of(other, scores)[strategy].value == pytest.approx(
            np.mean(shares)
        )
    assert ties > 0


# Demšar (2006), Table 6: AUC of C4.5 and of three variants on fourteen data sets.
DEMSAR = """
0.763 0.768 0.771 0.798 0.599 0.591 0.590 0.569 0.954 0.971 0.968 0.967 0.628 0.661 0.654 0.657
0.882 0.888 0.886 0.898 0.936 0.931 0.916 0.931 0.661 0.668 0.609 0.685 0.583 0.583 0.563 0.625
0.775 0.838 0.866 0.875 1.000 1.000 1.000 1.000 0.940 0.962 0.965 0.962 0.619 0.666 0.614 0.669
0.972 0.981 0.9751 0.975 0.957 0.978 0.946 0.970
"""


def test_demsars_example() -> None:
    """The ranks are 3.143, 2.000, 2.893 and 1.964; the critical difference at 0.05 is 1.25, so that
    the test does not tell 3.143 from 1.964."""
    values = np.array(DEMSAR.split(), dtype=float).reshape(14, 4).T
    scores = scores_of(values[:, :, None])
    assert friedman_p(scores) == pytest.approx(stats.friedmanchisquare(*values).pvalue)
    assert leaders(scores) == set(scores.strategies)


@pytest.mark.parametrize(("settings", "count"), [(30, 1), (8, 3)])
def test_who_is_not_told_apart_from_the_first(settings: int, count: int) -> None:
    """The first is always best, the second and third swap, the last is always worst: ranks of 1,
    2.5, 2.5 and 4. The critical difference of 30 settings is 0.856, of 8 it is 1.66."""
    values = np.tile(np.array([4.0, 3.0, 2.0, 1.0])[:, None, None], (1, settings, 2))
    values[1:3, ::2] = values[1:3, ::2][::-1]
    expected = {f"strategy {number}" for number in range(count)}
    assert leaders(scores_of(values)) == expected
    assert leaders(scores_of(-values, "low")) == expected


@pytest.mark.parametrize("shape", [(2, 5, 2), (3, 1, 2)])
def test_too_few_for_a_test_have_no_leaders(shape: tuple[int, ...]) -> None:
    scores = scores_of(np.ones(shape))
    assert friedman_p(scores) is None and leaders(scores) == set()
    assert friedman_p(scores_of(np.ones((3, 5, 2)))) == 1


def test_without_friedmans_word_nobody_differs_whatever_nemenyi_says() -> None:
    """Eight strategies in four settings: the first is best and the last worst, and the others take
    turns. Nemenyi's critical difference is 3.031 sqrt(8 * 9 / 24) = 5.25; the first and the last lie
    further apart, and yet Friedman's p-value is above 5 %."""
    rows = "1123 2782 4437 6651 5264 7515 3348 8876"  # the ranks of each
    ranks = np.array([list(map(int, row)) for row in rows.split()])
    assert all(sorted(column) == list(range(1, 9)) for column in ranks.T)
    assert stats.friedmanchisquare(*-ranks).pvalue > 0.05
    means = ranks.mean(axis=1)
    assert max(means) - min(means) > 5.25
    assert len(leaders(scores_of(-ranks[:, :, None].astype(float)))) == 8
