"""Clients with random samples of the whole data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.partition.scheme import Parts, Pool, Scheme


@dataclass(frozen=True, kw_only=True)
class Iid(Scheme):
    """Shuffle all samples and cut them into parts whose sizes differ by at most one."""

    name: ClassVar[str] = "iid"

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        return np.array_split(rng.permutation(len(pool.labels)), clients)
