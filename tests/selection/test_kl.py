"""Seol and Kim's selection by hand and by properties."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cohort.selection.entropy import KL
from tests.selection.views import labeled


def select(
    counts: np.ndarray, cohort: int, theta: float = 0.01
) -> tuple[list[int], list[list[int]]]:
    selector, seen = KL(theta=theta), labeled(counts, cohort)
    chosen = selector.select({}, np.arange(len(counts)), seen, np.random.default_rng(0))
    return chosen.tolist(), selector.quotas(chosen, seen).tolist()


BY_HAND = np.array([[4, 0, 5], [10, 2, 0], [0, 9, 0], [1, 1, 1]])


def test_by_hand():
    """Client 1 (12 samples) uses all: [10, 2, 0]. So class 2 is the rarest, and at most 10 of each
    are used. Client 0 (9 samples, like client 2, but a lower number) adds its 5 of class 2 and none
    of class 0: [10, 2, 5]. Now class 1 is the rarest, and 8 of client 2's 9 fit: [10, 10, 5].
    Client 3 adds its one of class 2 and none of the others: [10, 10, 6]."""
    assert select(BY_HAND, 4) == ([1, 0, 2, 3], [[10, 2, 0], [0, 0, 5], [0, 8, 0], [0, 0, 1]])
    assert select(BY_HAND, 2) == ([1, 0], [[10, 2, 0], [0, 0, 5]])


def test_it_ends_when_the_labels_are_even_enough():
    """[10, 10, 5] has a divergence of 0.044 nats."""
    divergence = stats.entropy([10, 10, 5], np.ones(3))
    assert divergence == pytest.approx(0.0437, abs=1e-4)
    assert select(BY_HAND, 4, theta=divergence * 1.01)[0] == [1, 0, 2]
    assert select(BY_HAND, 4, theta=divergence * 0.99)[0] == [1, 0, 2, 3]


def test_a_second_pass_takes_whom_the_first_one_passed_over():
    """Client 1 has only class 1, but class 2 is the rarest; after client 2 has added that, class 1
    is the rarest."""
    counts = np.array([[9, 1, 0], [0, 8, 0], [0, 0, 7]])
    assert select(counts, 3) == ([0, 2, 1], [[9, 1, 0], [0, 0, 7], [0, 8, 0]])


def test_it_ends_where_nobody_helps():
    counts = np.array([[9, 0], [5, 0], [4, 0]])
    assert select(counts, 3) == ([0], [[9, 0]])


def test_the_same_in_every_round_and_never_more_than_is_held():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shape = rng.integers(3, 20), rng.integers(2, 6)
        counts = rng.integers(0, 40, shape) * (rng.random(shape) < 0.5)
        cohort = int(rng.integers(1, len(counts) + 1))
        chosen, quotas = select(counts, cohort)
        assert (chosen, quotas) == select(counts, cohort)
        assert len(set(chosen)) == len(chosen) <= cohort
        assert (np.array(quotas) >= 0).all() and (np.array(quotas) <= counts[chosen]).all()
        assert np.array(quotas).sum(axis=0).max() <= counts[chosen[0]].max()
        assert quotas[0] == counts[chosen[0]].tolist()
