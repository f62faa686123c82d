"""Dirichlet label skew: NIID-Bench's balanced form and the plain one."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool, Scheme, group_by_owner

TRIES = 10_000


@dataclass(frozen=True, kw_only=True)
class Dirichlet(Scheme):
    """Dirichlet label skew in NIID-Bench's form: each class is split by shares drawn from
    Dir(alpha), and a client that already holds the mean size gets no more. The draw is repeated
    until every client has at least `minimum` samples.

    NIID-Bench draws shares for all clients, sets those of full clients to 0 and normalizes the
    rest. Shares drawn for the others alone have the same distribution and need no division by a sum
    that may vanish.
    """

    name: ClassVar[str] = "dir"
    balanced: ClassVar[bool] = True
    alpha: float = parameter(exclusiveMinimum=0, help="concentration: small is skewed")
    minimum: int = parameter(10, minimum=1, help="fewest samples of a client")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        if clients * self.minimum > samples:
            raise ValueError(f"{samples} samples cannot give {clients} clients {self.minimum} each")

    def scaled(self, share: float) -> Scheme:
        return dataclasses.replace(
            self, minimum=min(self.minimum, max(1, round(self.minimum * share)))
        )

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        per_class = np.bincount(pool.labels)
        for _ in range(TRIES):
            cuts = self.draw_cuts(per_class, clients, rng)
            if np.diff(cuts, axis=1).sum(axis=0).min() >= self.minimum:
                break
        else:
            relaxed = f" or '{dataclasses.replace(self, minimum=1)}'" if self.minimum > 1 else ""
            raise ValueError(
                f"none of {TRIES:,} draws gave each of {clients} clients at least {self.minimum} "
                f"samples; try fewer clients, a larger alpha{relaxed}"
            )
        samples = [
            rng.permutation(np.flatnonzero(pool.labels == label)) for label in range(len(cuts))
        ]
        owners = [np.repeat(np.arange(clients), counts) for counts in np.diff(cuts, axis=1)]
        return group_by_owner(np.concatenate(samples), np.concatenate(owners), clients)

    def draw_cuts(
        self, per_class: np.ndarray, clients: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw how to cut the classes: for each (rows), the boundaries between the clients'
        samples, from 0 to the size of the class."""
        mean_size = per_class.sum() / clients
        sizes = np.zeros(clients, dtype=np.int64)
        cuts = np.zeros((len(per_class), clients + 1), dtype=np.int64)
        for label, count in enumerate(per_class):
            open_clients = (
                np.flatnonzero(sizes < mean_size) if self.balanced else np.arange(clients)
            )
            shares = np.zeros(clients)
            shares[open_clients] = rng.dirichlet(np.full(len(open_clients), self.alpha))
            cumulated = np.cumsum(shares)
            cumulated[open_clients[-1] :] = 1
            cuts[label, 1:-1] = (cumulated[:-1] * count).astype(np.int64)
            cuts[label, -1] = count
            sizes += np.diff(cuts[label])
        return cuts


@dataclass(frozen=True, kw_only=True)
class PlainDirichlet(Dirichlet):
    """Dirichlet label skew without the balance rule, so that client sizes vary too."""

    name: ClassVar[str] = "dirplain"
    balanced: ClassVar[bool] = False
    minimum: int = parameter(1, minimum=0, help="fewest samples of a client; 0 allows empty ones")
