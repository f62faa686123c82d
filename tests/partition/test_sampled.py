"""sampled-low-high against AML's own sharder and a plain implementation of the rule."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.core.randomness import generator
from cohort.partition import Pool
from cohort.partition.schemes import Sampled


def cifar100(seed: int) -> np.ndarray:
    """45,000 of 50,000 labels as `random_split` leaves them: 450 of each class, give or take 6."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(100), 500))[:45_000]


def label_counts(scheme: Sampled, labels: np.ndarray, clients: int, seed: int) -> np.ndarray:
    parts = scheme.deal(Pool(labels), clients, generator(seed, "partition"))
    return np.stack([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])


def classes_held(low: int, high: int) -> np.ndarray:
    """For 20 seeds the number of classes of each of 100 clients; all clients hold 450 samples."""
    counts = np.stack(
        [label_counts(Sampled(low=low, high=high), cifar100(seed), 100, seed) for seed in range(20)]
    )
    assert (counts.sum(axis=2) == 450).all()
    return (counts > 0).sum(axis=2)


def test_classes_per_client_of_sections_4_1_and_4_2():
    """U{1..50}: the authors' seed gave a mean of 24.38, at least 2 and at most 49; over seeds the
    mean is 23 to 30."""
    held = classes_held(1, 50)
    means = held.mean(axis=1)
    assert 24 <= means.mean() <= 28
    assert means.min() >= 21 and means.max() <= 30
    assert held.min() == 1
    assert 49 <= held.max() <= 55


AUTHORS = {1: (2.29, 12), 5: (6.1, 12), 10: (11.0, 13), 50: (50.31, 52)}


@pytest.mark.parametrize("low", AUTHORS)
def test_classes_per_client_of_the_nc_partitions(low: int):
    """The authors' one seed lies among ours: mean and maximum, as measured with their code."""
    mean, most = AUTHORS[low]
    held = classes_held(low, low + 1)
    assert held.mean(axis=1).min() - 0.01 <= mean <= held.mean(axis=1).max() + 0.01
    assert held.max(axis=1).min() <= most <= held.max(axis=1).max()


def test_even_classes_leave_no_rest():
    """With exactly 450 of each class and 1 or 2 classes drawn, nobody holds more than 2, and the
    mean is 1.73."""
    labels = np.repeat(np.arange(100), 450)
    held = np.stack(
        [
            (label_counts(Sampled(low=1, high=2), labels, 100, seed) > 0).sum(axis=1)
            for seed in range(20)
        ]
    )
    assert held.max() == 2
    assert held.mean() == pytest.approx(1.73, abs=0.03)


@pytest.mark.parametrize("clients", [7, 10, 13])
def test_the_first_clients_get_what_does_not_divide(clients: int):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(5), [40, 21, 33, 60, 50]))
    sizes = label_counts(Sampled(low=1, high=3), labels, clients, 0).sum(axis=1)
    size, larger = divmod(204, clients)
    assert sizes.tolist() == [size + 1] * larger + [size] * (clients - larger)


def slow_counts(
    per_class: list[int], order: np.ndarray, low: int, high: int, rng: np.random.Generator
) -> list[list[int]]:
    """A plain implementation of the rule, one sample at a time."""
    left, total, clients = list(per_class), sum(per_class), len(order)
    table = [[0] * len(left) for _ in order]
    for client in order:
        size = total // clients + (1 if client < total % clients else 0)
        available = rng.permutation([label for label, count in enumerate(left) if count])
        chosen = available[: rng.integers(low, high + 1)]
        for index, label in enumerate(chosen):
            wanted = size // len(chosen) + (1 if index < size % len(chosen) else 0)
            table[client][label] = min(wanted, left[label])
        for label in chosen:
            left[label] -= table[client][label]
        missing = size - sum(table[client])
        for label in sorted(range(len(left)), key=lambda label: -left[label]):
            more = min(missing, left[label])
            table[client][label] += more
            left[label] -= more
            missing -= more
    return table


@pytest.mark.parametrize("seed", range(20))
def test_counts_follow_the_plain_implementation(seed: int):
    per_class, order = [70, 30, 101, 55, 41], np.random.default_rng(seed).permutation(9)
    counts = Sampled(low=1, high=4).draw_counts(
        np.array(per_class), order, np.random.default_rng(seed)
    )
    assert counts.tolist() == slow_counts(per_class, order, 1, 4, np.random.default_rng(seed))


def test_a_client_may_have_fewer_samples_than_classes():
    counts = label_counts(Sampled(low=5, high=5), np.repeat(np.arange(5), 4), 10, 0)
    assert (counts.sum(axis=1) == 2).all()
    assert (counts[0] > 0).sum() <= 2
