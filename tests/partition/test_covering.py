"""covering-k: every class is held; where NIID-Bench's rule already covers, they are the same."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.partition import Pool
from cohort.partition.schemes import Classes, Covering, draw_holders


def label_counts(
    scheme: Classes, classes: int, clients: int, seed: int, per_class: int = 30
) -> np.ndarray:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(classes), per_class))
    parts = scheme.deal(Pool(labels), clients, np.random.default_rng(seed))
    return np.stack([np.bincount(labels[part], minlength=classes) for part in parts])


@pytest.mark.parametrize(("classes", "k", "unheld"), [(100, 10, 35), (200, 20, 70)])
def test_the_rule_of_niid_bench_leaves_classes_unheld(classes: int, k: int, unheld: int):
    """Ten clients of CIFAR-100 and Tiny-ImageNet: (classes - 10) (1 - (k-1) / (classes-1))^10 =
    34.7 and 69.5 in the mean."""
    counts = [
        sum(not held for held in draw_holders(classes, 10, k, 1, np.random.default_rng(seed)))
        for seed in range(200)
    ]
    expected = (classes - 10) * (1 - (k - 1) / (classes - 1)) ** 10
    assert expected == pytest.approx(unheld, abs=0.6)
    # classes are drawn almost independently: the variance is below that of as many coins
    assert np.mean(counts) == pytest.approx(expected, abs=4 * np.sqrt(expected / 200))


CASES = [
    (100, 10, 10),
    (100, 30, 10),
    (100, 50, 10),
    (200, 20, 10),
    (200, 60, 10),
    (10, 4, 3),
    (7, 3, 3),
    (5, 5, 1),
]


@pytest.mark.parametrize(("classes", "k", "clients"), CASES)
@pytest.mark.parametrize("seed", range(5))
def test_every_class_is_held_and_every_client_holds_k(
    classes: int, k: int, clients: int, seed: int
):
    counts = label_counts(Covering(k=k), classes, clients, seed)
    assert ((counts > 0).sum(axis=1) == k).all()
    assert (counts.sum(axis=0) == 30).all()
    for column in counts.T:
        assert np.ptp(column[column > 0]) <= 1


def test_blocks_that_just_cover_are_disjoint():
    """#C = 10 of 100 classes at ten clients: client i holds classes 10 i to 10 i + 9, all of
    them."""
    np.testing.assert_array_equal(
        label_counts(Covering(k=10), 100, 10, 0), 30 * np.repeat(np.eye(10, dtype=int), 10, axis=1)
    )


def test_one_class_per_client_is_its_own():
    """Stratify's CIFAR-10 with #C = 1."""
    np.testing.assert_array_equal(
        label_counts(Covering(k=1), 10, 10, 0), 30 * np.eye(10, dtype=int)
    )


@pytest.mark.parametrize(("classes", "k", "clients"), [(10, 3, 10), (10, 3, 25), (5, 2, 20)])
def test_with_as_many_clients_as_classes_it_is_the_rule_of_niid_bench(
    classes: int, k: int, clients: int
):
    for seed in range(5):
        np.testing.assert_array_equal(
            label_counts(Covering(k=k), classes, clients, seed),
            label_counts(Classes(k=k), classes, clients, seed),
        )


def test_the_classes_after_the_block_are_equally_likely():
    """Three clients of five classes, k = 3: client 0 has 0 and 1, and one of three others, 400
    times each in 1,200, give or take 16.3."""
    held = sum(label_counts(Covering(k=3), 5, 3, seed)[0] > 0 for seed in range(1200))
    assert held[:2].tolist() == [1200, 1200] and held.sum() == 3600
    assert np.abs(held[2:] - 400).max() < 4 * 16.4
