"""Clusters of clients: by hand, against all partitions, and against other starts of k-means."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cohort.training.procedures.concat.clusters import NONE, cluster_clients


def found(
    counts: list[list[int]] | np.ndarray, clusters: int, balanced: bool = False, seed: int = 0
) -> list[int]:
    return cluster_clients(
        np.array(counts), clusters, np.random.default_rng(seed), balanced
    ).tolist()


def spread(shares: np.ndarray, labels: np.ndarray) -> float:
    """The sum of squared distances to the mean of each cluster."""
    parts = [shares[labels == label] for label in np.unique(labels)]
    return float(sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts))


@pytest.mark.parametrize("seed", range(5))
def test_label_shares_matter_and_sizes_do_not(seed: int):
    """By counts each of the two large clients would be alone. Clusters are numbered by their first
    clients."""
    assert found([[0, 100], [100, 0], [0, 1], [3, 0]], 2, seed=seed) == [0, 1, 0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_a_client_without_samples_is_in_no_cluster(seed: int):
    """Nor does it form one, as a point far from all others would."""
    assert found([[0, 0], [9, 1], [0, 5], [0, 0], [90, 10], [1, 20]], 2, seed=seed) == [
        NONE,
        0,
        1,
        NONE,
        0,
        1,
    ]


def test_no_partition_is_better():
    """All 3 ** 8 assignments of eight clients to three clusters."""
    counts = np.random.default_rng(3).integers(1, 40, (8, 4))
    shares = counts / counts.sum(axis=1, keepdims=True)
    best = min(spread(shares, np.array(labels)) for labels in product(range(3), repeat=8))
    assert spread(shares, np.array(found(counts, 3))) == pytest.approx(best, rel=1e-12)


def test_many_other_starts_of_k_means_find_the_same_clusters():
    """Five kinds of clients in mixed order, with 20 to 2000 samples each."""
    rng = np.random.default_rng(5)
    kinds = rng.dirichlet(np.full(10, 0.3), 5)[
        rng.permutation(np.repeat(np.arange(5), [20, 15, 10, 10, 5]))
    ]
    counts = np.stack([rng.multinomial(rng.integers(20, 2000), kind) for kind in kinds])
    other = (
        KMeans(5, n_init=100, random_state=77)
        .fit(counts / counts.sum(axis=1, keepdims=True))
        .labels_
    )
    ours = np.array(found(counts, 5))
    assert len(np.unique(ours)) == 5
    assert ((other[:, None] == other) == (ours[:, None] == ours)).all()
    first = [int(np.flatnonzero(ours == cluster)[0]) for cluster in range(5)]
    assert first == sorted(first)


@pytest.mark.parametrize("balanced", [False, True])
def test_more_clusters_than_distributions_or_clients(balanced: bool):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(set(found([[1, 1]] * 6, 3, balanced))) == (3 if balanced else 1)
        assert found([[0, 1], [1, 0], [0, 0]], 5, balanced) == [0, 1, NONE]


def test_balanced_clusters_do_not_exceed_their_places():
    """Shares 0.9, 0.8, 0.7 and 0.1 of the first label. K-means puts the first three together; with
    int(1.2 * 4 / 2) = 2 places, 0.7 loses least by moving to the center 0.1: 0.36 - 0.01 against
    0.49 and 0.64 - 0.01."""
    counts = [[90, 10], [80, 20], [70, 30], [10, 90]]
    assert found(counts, 2) == [0, 0, 0, 1]
    assert found(counts, 2, balanced=True) == [0, 0, 1, 1]


@pytest.mark.parametrize("seed", [0, 1, 6])
@pytest.mark.parametrize(
    ("clients", "clusters", "places"), [(40, 5, 9), (100, 5, 24), (11, 5, 3), (7, 1, 8)]
)
def test_balanced_clusters_are_locally_optimal(clients: int, clusters: int, places: int, seed: int):
    """There are 1.2 times the mean places, rounded down, but enough for all. With the final centers
    no swap and no move to a free place is an improvement."""
    counts = np.random.default_rng(seed).integers(0, 9, (clients, 3)) ** 3 + [1, 0, 0]
    labels = np.array(found(counts, clusters, balanced=True))
    sizes = np.bincount(labels, minlength=clusters)
    assert sizes.sum() == clients and sizes.max() <= places
    shares = counts / counts.sum(axis=1, keepdims=True)
    centers = np.stack([shares[labels == label].mean(axis=0) for label in range(sizes.size)])
    distances = ((shares[:, None] - centers) ** 2).sum(axis=2)
    own = distances[np.arange(clients), labels]
    gains = (
        own[:, None] + own - distances[:, labels] - distances[:, labels].T
    )  # of two clients that swap
    assert gains.max() < 1e-12
    free = sizes < places
    assert (
        own - np.where(free, distances, np.inf).min(axis=1)
    ).max() < 1e-12  # of one client that moves to a free place
