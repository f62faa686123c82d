"""How tests deal samples: by the name of a partition, with a generator of one seed."""

import numpy as np

from cohort.partition import Pool, parse_partition


def deal(name: str, pool: Pool | np.ndarray, clients: int, seed: int = 0) -> list[np.ndarray]:
    """The samples of each client. An array is the labels of a pool without groups."""
    pool = pool if isinstance(pool, Pool) else Pool(pool)
    return parse_partition(name).deal(pool, clients, np.random.default_rng(seed))


def count_labels(name: str, labels: np.ndarray, clients: int, seed: int = 0) -> np.ndarray:
    """How many samples of each class each client holds (client, class)."""
    parts = deal(name, labels, clients, seed)
    return np.stack([np.bincount(labels[part], minlength=labels.max() + 1) for part in parts])
