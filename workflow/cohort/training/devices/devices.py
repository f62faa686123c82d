"""The base of all kinds of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cohort.core.component_names import NameEncoded


@dataclass(frozen=True)
class Speeds:
    """How many samples each client trains on in a second (client), and how many bytes its link
    sends or receives in one (client)."""

    samples: np.ndarray
    bytes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Devices(NameEncoded):
    """The devices on which clients train. This base class simulates no time."""

    def speeds(self, clients: int, rng: np.random.Generator) -> Speeds | None:
        """The speeds of all clients, which stay the same in all rounds; None without a simulation.
        The generator yields the same draws for every strategy."""
        return None
