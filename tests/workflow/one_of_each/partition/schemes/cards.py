"""Samples dealt like cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.partition.schemes import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Cards(Scheme):
    """One sample for each client in turn."""

    name: ClassVar[str] = "cards"

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return [np.arange(client, len(pool.labels), clients) for client in range(clients)]
