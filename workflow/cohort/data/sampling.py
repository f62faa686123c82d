"""The samples of a data set that a cell uses."""

import numpy as np

from cohort.core.randomness import generator


def scaled_count(count: int, share: float) -> int:
    """Scale a number of samples by a share; any positive number stays at least 1."""
    return max(1, round(count * share)) if count else 0


def floor_share(count: int, share: float) -> int:
    """A share of a count, rounded down: 29 for 0.29 of 100, whose product is a float below 29."""
    return int(count * share + 1e-9)


def draw_part(count: int, share: float, purpose: str, seed: int = 0) -> np.ndarray:
    """Draw a random share of `count` samples, whatever their classes; return a Boolean mask."""
    part = np.zeros(count, dtype=bool)
    part[generator(seed, purpose).permutation(count)[: round(count * share)]] = True
    return part


def draw_share(labels: np.ndarray, share: float, purpose: str) -> np.ndarray:
    """Draw indices of a share of the samples, stratified by class. The run's seed does not matter,
    so that all seeds use the same data."""
    if share == 1:
        return np.arange(len(labels))
    return draw_stratified(labels, scaled_count(len(labels), share), purpose)


def draw_stratified(labels: np.ndarray, count: int, purpose: str) -> np.ndarray:
    """Draw `count` samples, each class in proportion to its size (largest remainders first), and
    return their indices in ascending order. The run's seed does not matter."""
    exact = np.bincount(labels) * count / len(labels)
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: count - counts.sum()]] += 1
    rng = generator(0, purpose)
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[:amount]
        for label, amount in enumerate(counts)
    ]
    return np.sort(np.concatenate(chosen))
