"""Clusters of clients with similar label distributions."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

NONE = -1  # the cluster of a client without samples
STARTS = 10  # runs of k-means, of which the best is used
STEPS = 100  # at most, of balanced k-means
SLACK = 1.2  # largest size of a balanced cluster, relative to the mean


def cluster_clients(
    label_counts: np.ndarray, clusters: int, rng: np.random.Generator, balanced: bool = False
) -> np.ndarray:
    """Cluster clients by k-means on label distributions: the cluster of each client, NONE for one
    without samples.

    Clusters are numbered in the order of their first clients. There are fewer than `clusters` if
    there are fewer distinct distributions.
    """
    sizes = label_counts.sum(axis=1)
    held = np.flatnonzero(sizes)
    shares = label_counts[held] / sizes[held, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distributions than clusters
        clustering = KMeans(
            min(clusters, len(held)), n_init=STARTS, random_state=int(rng.integers(2**31))
        ).fit(shares)
    labels = (
        _balance_clusters(shares, clustering.cluster_centers_) if balanced else clustering.labels_
    )
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    of_client = np.full(len(label_counts), NONE)
    of_client[held] = np.argsort(np.argsort(first))[label]
    return of_client


def _balance_clusters(shares: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Assign clients to clusters of limited size by Lloyd's algorithm from these centers: each step
    assigns clients optimally within the limit."""
    clients, clusters = len(shares), len(centers)
    most = max(int(SLACK * clients / clusters), -(-clients // clusters))
    labels = np.full(clients, NONE)
    for _ in range(STEPS):
        distances = np.square(shares[:, None] - centers).sum(axis=2)
        taken = linear_sum_assignment(np.repeat(distances, most, axis=1))[1] // most
        if (taken == labels).all():
            break
        labels = taken
        centers = centers.copy()
        for number in np.unique(labels):
            centers[number] = shares[labels == number].mean(axis=0)
    return labels
