"""The iid partition."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.partition import Pool
from cohort.partition.schemes import Iid


@pytest.mark.parametrize(
    ("samples", "clients"), [(100, 10), (101, 10), (109, 10), (7, 7), (45_000, 100)]
)
def test_sizes_differ_by_at_most_one(samples: int, clients: int):
    sizes = [
        len(part)
        for part in Iid().deal(
            Pool(np.zeros(samples, dtype=int)), clients, np.random.default_rng(0)
        )
    ]
    assert sum(sizes) == samples
    assert set(sizes) <= {samples // clients, -(-samples // clients)}


def test_every_sample_is_as_likely_at_every_client():
    """Over 2,000 seeds sample i lies at client 0 of 4 with probability 1/4: 500 times, give or take
    19.4 (binomial)."""
    held = np.zeros(12)
    for seed in range(2000):
        held[Iid().deal(Pool(np.zeros(12, dtype=int)), 4, np.random.default_rng(seed))[0]] += 1
    assert np.abs(held - 500).max() < 4 * 19.4
