"""The Laplace mechanism on label counts. With noise of scale 1 / epsilon, adding or removing one
sample changes the probability of any upload by at most a factor of exp(epsilon)."""

from __future__ import annotations

import numpy as np

from cohort.core.errors import UserError


def laplace(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Add reproducible noise, for experiments. Anyone who knows the seed can remove it."""
    return counts + rng.laplace(scale=1 / epsilon, size=counts.shape)


def opendp_laplace(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """Add OpenDP's noise, for real federations: it comes from the system's cryptographic source and
    resists attacks on floating-point arithmetic. Runs that use it cannot be reproduced."""
    try:
        import opendp.prelude as dp  # an optional dependency
    except ImportError:
        raise UserError(
            "noise 'opendp' needs the package opendp, which is not installed: pip install opendp"
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    mechanism = dp.m.make_laplace(*space, scale=1 / epsilon)
    return np.array([mechanism(row) for row in counts.astype(float).tolist()])
