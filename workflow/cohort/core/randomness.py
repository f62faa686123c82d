"""Random generators that are addressed, not consumed.

Each random draw has its own generator, keyed by (seed, purpose, round, client). So the order in
which clients train does not matter, resuming a run needs no saved generator state, and strategies
with the same seed share their shards, their initial model and each client's batch order.
"""

import hashlib

import numpy as np


def generator(seed: int, purpose: str, *, round: int = 0, client: int = 0) -> np.random.Generator:
    """A new NumPy generator for this address: equal arguments give equal draws."""
    return np.random.default_rng(_sequence(seed, purpose, round, client))


def torch_seed(seed: int, purpose: str, *, round: int = 0, client: int = 0) -> int:
    """A seed for torch's generators, derived from this address."""
    return int(_sequence(seed, purpose, round, client).generate_state(1, np.uint64)[0] >> 1)


def _sequence(seed: int, purpose: str, round: int, client: int) -> np.random.SeedSequence:
    word = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:4], "big")
    return np.random.SeedSequence([seed, word, round, client])
