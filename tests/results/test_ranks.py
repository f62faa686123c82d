"""Mean ranks, Friedman's and Nemenyi's tests against Demšar's paper and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cohort.results.across import critical_difference, friedman_p, leaders
from tests.results.test_across import scores_of

# Demšar (2006), Table 6: AUC of C4.5 and of three variants on fourteen data sets.
DEMSAR = """
0.763 0.768 0.771 0.798
0.599 0.591 0.590 0.569
0.954 0.971 0.968 0.967
0.628 0.661 0.654 0.657
0.882 0.888 0.886 0.898
0.936 0.931 0.916 0.931
0.661 0.668 0.609 0.685
0.583 0.583 0.563 0.625
0.775 0.838 0.866 0.875
1.000 1.000 1.000 1.000
0.940 0.962 0.965 0.962
0.619 0.666 0.614 0.669
0.972 0.981 0.9751 0.975
0.957 0.978 0.946 0.970
"""


def demsar() -> np.ndarray:
    """A row for each strategy, a column for each setting, one seed each."""
    rows = [line.split() for line in DEMSAR.strip().splitlines()]
    return np.array(rows, dtype=float).T[:, :, None]


def test_demsars_example() -> None:
    """The ranks are 3.143, 2.000, 2.893 and 1.964; the critical difference at 0.05 is 1.25, so that
    the test does not tell 3.143 from 1.964."""
    scores = scores_of(demsar())
    assert friedman_p(scores) == pytest.approx(stats.friedmanchisquare(*demsar()[:, :, 0]).pvalue)
    assert leaders(scores) == set(scores.strategies)


@pytest.mark.parametrize(
    ("strategies", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)]
)
def test_critical_values_of_his_table_5(strategies: int, q: float) -> None:
    scale = math.sqrt(strategies * (strategies + 1) / (6 * 12))
    assert critical_difference(strategies, 12) / scale == pytest.approx(q, abs=1e-3)


@pytest.mark.parametrize(("settings", "count"), [(30, 1), (8, 3)])
def test_who_is_not_told_apart_from_the_first(settings: int, count: int) -> None:
    """The first is always best, the second and third swap, the last is always worst: ranks of 1,
    2.5, 2.5 and 4. The critical difference of 30 settings is 0.856, of 8 it is 1.66."""
    values = np.tile(np.array([4.0, 3.0, 2.0, 1.0])[:, None, None], (1, settings, 2))
    values[1:3, ::2] = values[1:3, ::2][::-1]
    expected = {f"strategy {number}" for number in range(count)}
    assert leaders(scores_of(values)) == expected
    assert leaders(scores_of(-values, "low")) == expected


def test_without_friedmans_word_all_lead() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 2))
    p_value = friedman_p(scores_of(values))
    assert p_value is not None and p_value > 0.05
    assert len(leaders(scores_of(values))) == 3
    assert friedman_p(scores_of(np.ones((3, 5, 2)))) == 1


@pytest.mark.parametrize("shape", [(2, 5, 2), (3, 1, 2)])
def test_too_few_for_a_test_have_no_leaders(shape: tuple[int, ...]) -> None:
    scores = scores_of(np.ones(shape))
    assert friedman_p(scores) is None and leaders(scores) == set()


def test_without_friedmans_word_nobody_differs_whatever_nemenyi_says() -> None:
    """Eight strategies in four settings: the first is best and the last worst, and the others take
    turns. Nemenyi's critical difference is 3.031 sqrt(8 * 9 / 24) = 5.25; the first and the last lie
    further apart, and yet Friedman's p-value is above 5 %."""
    ranks = np.array(
        [
            [1, 1, 2, 3],
            [2, 7, 8, 2],
            [4, 4, 3, 7],
            [6, 6, 5, 1],
            [5, 2, 6, 4],
            [7, 5, 1, 5],
            [3, 3, 4, 8],
            [8, 8, 7, 6],
        ]
    )
    assert all(sorted(column) == list(range(1, 9)) for column in ranks.T)
    assert stats.friedmanchisquare(*-ranks).pvalue > 0.05
    means = ranks.mean(axis=1)
    assert max(means) - min(means) > 5.25
    assert len(leaders(scores_of(-ranks[:, :, None].astype(float)))) == 8
