"""Randomness is addressed, not consumed.

Every draw comes from a generator named by (seed, purpose, round, client). No generator's state outlives its purpose, so the order in
which clients are trained does not matter, a resumed run needs no saved state, and two strategies on one seed share their shards, their
first model and the batch order of the same client in the same round.
"""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, purpose: str, *, round: int = 0, client: int = 0) -> np.random.Generator:
    """The one generator of this address."""
    return np.random.default_rng(_sequence(seed, purpose, round, client))


def torch_seed(seed: int, purpose: str, *, round: int = 0, client: int = 0) -> int:
    """A seed for torch's own generators, from the same address."""
    return int(_sequence(seed, purpose, round, client).generate_state(1, np.uint64)[0] >> 1)


def _sequence(seed: int, purpose: str, round: int, client: int) -> np.random.SeedSequence:
    word = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:4], "big")
    return np.random.SeedSequence([seed, word, round, client])
