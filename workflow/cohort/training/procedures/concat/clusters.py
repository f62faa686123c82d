"""Clients in clusters by what labels they hold."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

NONE = -1  # the cluster of a client without samples
STARTS = 10  # of k-means, of which the best is taken
STEPS = 100  # of the balanced form, at most
SLACK = 1.2  # how much more than the mean cluster a balanced one may have


def clustered(
    label_counts: np.ndarray, clusters: int, rng: np.random.Generator, balanced: bool = False
) -> np.ndarray:
    """The cluster of each client by k-means on the shares of its labels. Cluster 0 is that of the first client with samples, 1 that of the
    first one that is not in it, and so on. There are fewer clusters where fewer distributions differ."""
    sizes = label_counts.sum(axis=1)
    held = np.flatnonzero(sizes)
    shares = label_counts[held] / sizes[held, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distributions than clusters
        found = KMeans(
            min(clusters, len(held)), n_init=STARTS, random_state=int(rng.integers(2**31))
        ).fit(shares)
    labels = _balanced(shares, found.cluster_centers_) if balanced else found.labels_
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    of_client = np.full(len(label_counts), NONE)
    of_client[held] = np.argsort(np.argsort(first))[label]
    return of_client


def _balanced(shares: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Lloyd's steps from these centers, in which every cluster has so many places and nobody could change places for the better."""
    clients, clusters = len(shares), len(centers)
    places = max(int(SLACK * clients / clusters), -(-clients // clusters))
    labels = np.full(clients, NONE)
    for _ in range(STEPS):
        distances = np.square(shares[:, None] - centers).sum(axis=2)
        taken = linear_sum_assignment(np.repeat(distances, places, axis=1))[1] // places
        if (taken == labels).all():
            break
        labels = taken
        centers = np.stack([shares[labels == number].mean(axis=0) if (labels == number).any() else center
                            for number, center in enumerate(centers)])  # fmt: skip
    return labels
