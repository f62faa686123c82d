"""classes-k: which classes a client holds and how a class is split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from cohort.partition import Pool
from cohort.partition.schemes import Classes

PER_CLASS = [500, 437, 250, 501, 333]
LABELS = np.random.default_rng(3).permutation(np.repeat(np.arange(5), PER_CLASS))
CASES = [(k, clients) for k in (1, 2, 3, 5) for clients in (5, 12, 20)]


def label_counts(labels: np.ndarray, k: int, clients: int, seed: int) -> np.ndarray:
    parts = Classes(k=k).deal(Pool(labels), clients, np.random.default_rng(seed))
    return np.stack([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


@pytest.mark.parametrize(("k", "clients"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_every_client_holds_exactly_k_classes_among_them_its_own(k: int, clients: int, seed: int):
    counts = label_counts(LABELS, k, clients, seed)
    assert ((counts > 0).sum(axis=1) == k).all()
    assert all(counts[client, client % 5] > 0 for client in range(clients))


@pytest.mark.parametrize(("k", "clients"), CASES)
@pytest.mark.parametrize("seed", range(3))
def test_a_class_is_split_evenly_among_its_holders(k: int, clients: int, seed: int):
    counts = label_counts(LABELS, k, clients, seed)
    for label, total in enumerate(PER_CLASS):
        held = counts[:, label][counts[:, label] > 0]
        assert held.sum() == total
        assert held.max() - held.min() <= 1


def test_one_class_per_client_and_as_many_clients_is_one_class_each():
    """Stratify's #C=1 with ten clients: client i holds exactly class i, and all of it."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 30))
    np.testing.assert_array_equal(label_counts(labels, 1, 10, 0), 30 * np.eye(10, dtype=int))


def test_the_other_classes_are_equally_likely():
    labels = np.repeat(np.arange(5), 10)
    others = np.zeros(5)
    for seed in range(1000):
        others += label_counts(labels, 3, 5, seed)[0] > 0
    assert others[0] == 1000
    assert others.sum() == 3000
    # two of four others: each is held in 500 of 1,000 draws, give or take 15.8; the four counts add up to 2,000
    assert np.abs(others[1:] - 500).max() < 4 * 15.8


def test_which_samples_of_a_class_a_holder_gets_is_chance():
    """Two holders of ten samples: each sample lies at client 0 in half of 1,000 draws."""
    held = np.zeros(10)
    for seed in range(1000):
        held[
            Classes(k=1).deal(Pool(np.zeros(10, dtype=int)), 2, np.random.default_rng(seed))[0]
        ] += 1
    assert held.sum() == 5000
    assert chisquare(held).pvalue > 1e-3


def test_a_class_with_too_few_samples_is_named():
    labels = np.array([0] * 20 + [1] * 3)
    with pytest.raises(ValueError, match="class 1 has 3 samples for 4 clients that hold it"):
        Classes(k=2).deal(Pool(labels), 4, np.random.default_rng(0))
