"""Clients of unequal size whose labels are mixed alike (NIID-Bench's quantity skew)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool
from cohort.partition.schemes.dirichlet import PlainDirichlet


@dataclass(frozen=True, kw_only=True)
class Quantity(PlainDirichlet):
    """Shares of all samples drawn from Dir(alpha), whatever their labels: plain Dirichlet skew over a single class."""

    name: ClassVar[str] = "quantity"
    minimum: int = parameter(10, minimum=1, help="samples that every client gets at least")

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return super().deal(Pool(np.zeros_like(pool.labels)), clients, rng)
