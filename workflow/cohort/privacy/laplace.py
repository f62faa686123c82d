"""The Laplace mechanism on label counts: with noise of scale 1 / epsilon, one sample more or less changes the probability of any upload
by a factor of exp(epsilon) at most."""

from __future__ import annotations

import numpy as np

from cohort.core.errors import UserError


def laplace(counts: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """With noise that its generator's address gives again: for experiments. Whoever knows the address can take it off."""
    return counts + rng.laplace(scale=1 / epsilon, size=counts.shape)


def opendp_laplace(counts: np.ndarray, epsilon: float) -> np.ndarray:
    """With OpenDP's noise, from the system's cryptographic source and safe against attacks on floating-point numbers: for real federations.
    Nobody can draw it again, so no run with it can be repeated."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise UserError(
            "noise 'opendp' needs the package opendp, which is not installed: pip install opendp"
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    mechanism = dp.m.make_laplace(*space, scale=1 / epsilon)
    return np.array([mechanism(row) for row in counts.astype(float).tolist()])
