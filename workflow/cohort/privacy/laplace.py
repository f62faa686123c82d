"""The Laplace mechanism on label counts. With noise of scale 1 / epsilon, adding or removing one
sample changes the probability of any upload by at most a factor of exp(epsilon)."""

from __future__ import annotations

import numpy as np


def add_laplace_noise(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Add noise of scale 1 / epsilon for experiments; who knows the seed can remove it."""
    return counts + rng.laplace(scale=1 / epsilon, size=counts.shape)
