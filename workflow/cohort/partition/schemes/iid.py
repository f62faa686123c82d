"""Every client holds a random sample of everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.partition.scheme import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Iid(Scheme):
    """All samples shuffled and cut into parts that differ by at most one sample."""

    name: ClassVar[str] = "iid"

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return np.array_split(rng.permutation(len(pool.labels)), clients)
