"""Clients of unequal sizes with the same label distribution (NIID-Bench's quantity skew)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool
from cohort.partition.schemes.dirichlet import PlainDirichlet


@dataclass(frozen=True, kw_only=True)
class Quantity(PlainDirichlet):
    """Split all samples by shares drawn from Dir(alpha), whatever their labels."""

    name: ClassVar[str] = "quantity"
    minimum: int = parameter(10, minimum=1, help="fewest samples of a client")

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return super().deal(Pool(np.zeros_like(pool.labels)), clients, rng)
