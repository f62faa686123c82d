"""Mean ranks, Friedman's and Nemenyi's tests against Demšar's paper and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from cohort.results.ranks import critical_difference, ranking
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
    """His ranks are 3.143, 2.000, 2.893 and 1.964; the critical difference at 0.05 is 1.25, so that
    the test does not tell 3.143 from 1.964."""
    result = ranking(scores_of(demsar()))
    assert result is not None
    assert list(result.ranks) == ["strategy 3", "strategy 1", "strategy 2", "strategy 0"]
    np.testing.assert_allclose(list(result.ranks.values()), [1.964, 2.000, 2.893, 3.143], atol=5e-4)
    assert result.difference == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert result.p_value == pytest.approx(stats.friedmanchisquare(*demsar()[:, :, 0]).pvalue)
    assert result.p_value < 0.05
    assert result.groups == [("strategy 3", "strategy 1", "strategy 2", "strategy 0")]


@pytest.mark.parametrize(
    ("strategies", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (8, 3.031), (10, 3.164)]
)
def test_critical_values_of_his_table_5(strategies: int, q: float) -> None:
    scale = math.sqrt(strategies * (strategies + 1) / (6 * 12))
    assert critical_difference(strategies, 12) / scale == pytest.approx(q, abs=1e-3)


def graded(settings: int = 30) -> np.ndarray:
    """Four strategies: the first always best, the second and third swap, the last always worst."""
    values = np.tile(np.array([4.0, 3.0, 2.0, 1.0])[:, None, None], (1, settings, 2))
    values[1:3, ::2] = values[1:3, ::2][::-1]
    return values


def test_groups_of_what_does_not_differ() -> None:
    """The critical difference of 30 settings is 0.856; the middle two have rank 2.5 each."""
    result = ranking(scores_of(graded()))
    assert result is not None
    assert list(result.ranks.values()) == [1, 2.5, 2.5, 4]
    assert result.groups == [("strategy 1", "strategy 2")]


def test_groups_may_overlap() -> None:
    """Of 8 settings it is 1.66: 1 and 2.5, and 2.5 and 4, lie within it, 1 and 4 do not."""
    result = ranking(scores_of(graded(8)))
    assert result is not None
    assert result.groups == [
        ("strategy 0", "strategy 1", "strategy 2"),
        ("strategy 1", "strategy 2", "strategy 3"),
    ]


def test_low_is_better_and_seeds_are_averaged() -> None:
    """Ranks are those of means over seeds, of which settings have different numbers of wins."""
    values = np.array([[[1.0, 8.0], [2.0, 2.0]], [[5.0, 5.0], [1.0, 1.0]], [[9, 9], [9, 9]]])
    result = ranking(scores_of(values, "low"))
    assert result is not None
    assert list(result.ranks.values()) == [1.5, 1.5, 3]


def test_without_friedmans_word_all_are_one_group() -> None:
    values = np.random.default_rng(0).normal(size=(3, 5, 2))
    result = ranking(scores_of(values))
    assert result is not None and result.p_value > 0.05
    assert len(result.groups) == 1 and len(result.groups[0]) == 3
    tied = ranking(scores_of(np.ones((3, 5, 2))))
    assert tied is not None and tied.p_value == 1 and set(tied.ranks.values()) == {2}


def test_too_few() -> None:
    assert ranking(scores_of(np.ones((2, 5, 2)))) is None
    assert ranking(scores_of(np.ones((3, 1, 2)))) is None


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
    result = ranking(scores_of(-ranks[:, :, None].astype(float)))
    means = list(result.ranks.values())
    assert means[-1] - means[0] > result.difference
    assert result.groups == [tuple(result.ranks)]
