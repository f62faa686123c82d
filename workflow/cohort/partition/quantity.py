"""Clients of unequal size whose labels are mixed alike (NIID-Bench's quantity skew)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.components import parameter
from cohort.partition.dirichlet import PlainDirichlet


@dataclass(frozen=True, kw_only=True)
class Quantity(PlainDirichlet):
    """Shares of all samples drawn from Dir(alpha), whatever their labels: plain Dirichlet skew over a single class."""

    name: ClassVar[str] = "quantity"
    minimum: int = parameter(10, minimum=1, help="samples that every client gets at least")

    def deal(self, labels: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        return super().deal(np.zeros_like(labels), clients, rng)
