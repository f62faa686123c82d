"""quantity-alpha: how unequal client sizes are, and that labels do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.partition import Pool
from cohort.partition.schemes import Quantity


def sizes(alpha: float, minimum: int, samples: int, clients: int, seed: int) -> list[int]:
    labels = np.zeros(samples, dtype=np.int64)
    return [
        len(part)
        for part in Quantity(alpha=alpha, minimum=minimum).deal(
            Pool(labels), clients, np.random.default_rng(seed)
        )
    ]


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_sizes_have_the_moments_of_the_dirichlet_distribution(alpha: float):
    """Of a sample that is large enough for a minimum of 1 to change nothing: mean p = 1/8, variance
    p (1-p) / (8 alpha + 1)."""
    shares = np.array([sizes(alpha, 1, 100_000, 8, seed) for seed in range(500)]) / 100_000
    variance = 7 / 64 / (8 * alpha + 1)
    assert np.abs(shares.mean(axis=0) - 1 / 8).max() < 4 * np.sqrt(variance / 500)
    assert shares.var() == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("seed", range(10))
def test_everyone_gets_the_minimum(seed: int):
    assert min(sizes(0.5, 20, 1000, 10, seed)) >= 20


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_matter(seed: int):
    """The same parts whatever the labels, and each client holds every class in nearly equal
    shares."""
    labels = np.random.default_rng(9).permutation(np.repeat(np.arange(10), 1000))
    parts, others = (
        Quantity(alpha=0.5).deal(Pool(given), 8, np.random.default_rng(seed))
        for given in (labels, labels[::-1])
    )
    for part, other in zip(parts, others, strict=True):
        np.testing.assert_array_equal(part, other)
        expected = len(part) / 10
        counts = np.bincount(labels[part], minlength=10)
        assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_a_minimum_that_no_draw_reaches_is_a_user_error():
    with pytest.raises(
        ValueError,
        match=r"none of 10,000 draws .* at least 10 samples; try fewer clients, a larger alpha or .quantity",
    ):
        Quantity(alpha=0.01).deal(
            Pool(np.zeros(1000, dtype=np.int64)), 50, np.random.default_rng(0)
        )
