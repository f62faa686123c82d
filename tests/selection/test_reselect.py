"""FedEntropy's judgment against trying every subset of the same order."""

from __future__ import annotations

import numpy as np
from scipy import stats

from cohort.selection.entropy import Reselect


def greedy(soft: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Leave out clients one by one while the entropy grows, computed by scipy."""

    def bits(kept: list[int]) -> float:
        return float(stats.entropy(np.average(soft[kept], axis=0, weights=sizes[kept]), base=2))

    kept = list(range(len(sizes)))
    while len(kept) > 1:
        best, gone = max(
            (bits([other for other in kept if other != client]), -client) for client in kept
        )
        if best <= bits(kept) + 1e-12:
            break
        kept.remove(-gone)
    return kept


def test_it_leaves_out_who_makes_the_mean_less_even():
    soft = np.array([[0.9, 0.1], [0.1, 0.9], [1.0, 0.0]])
    assert Reselect().keep({"soft_labels": soft}, np.array([5, 5, 5])).tolist() == [
        True,
        True,
        False,
    ]


def test_against_scipy():
    kept = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        soft, sizes = rng.dirichlet(np.full(5, 0.3), 8), rng.integers(1, 50, 8)
        mask = Reselect().keep({"soft_labels": soft}, sizes)
        assert np.flatnonzero(mask).tolist() == greedy(soft, sizes)
        kept.append(mask.sum())
    assert min(kept) < 6 and max(kept) == 8


def test_a_client_without_samples_does_not_hinder_the_judgment():
    soft = np.array([[0.9, 0.1], [np.nan, np.nan], [0.1, 0.9], [1.0, 0.0]])
    assert Reselect().keep({"soft_labels": soft}, np.array([5, 0, 5, 5])).tolist() == [
        True,
        True,
        True,
        False,
    ]
