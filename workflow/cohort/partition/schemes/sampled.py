"""AML's sampled sharder: each client draws how many classes it holds, then which ones (sections 4.1
and 4.2; allocation `equal` in its code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.partition.scheme import Parts, Pool, Scheme, group_by_owner


@dataclass(frozen=True, kw_only=True)
class Sampled(Scheme):
    """Clients have equal sizes and are served in random order. Each draws a number of classes
    uniformly from `low` to `high`, then that many of the classes with samples left, and takes
    equally much of each. What these lack comes from the classes with the most samples left.

    So the last clients end up with more classes than they drew, especially if classes are uneven.
    """

    name: ClassVar[str] = "sampled"
    low: int = parameter(minimum=1, help="the fewest classes that a client draws")
    high: int = parameter(minimum=1, help="the most classes that a client draws")

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        super().check(classes, clients, samples)
        if self.low > self.high:
            raise ValueError(
                f"{self.low} is more than {self.high}; the smaller number of classes comes first"
            )
        if self.high > classes:
            raise ValueError(
                f"a client cannot draw {self.high} classes where there are only {classes}"
            )

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        order = rng.permutation(clients)
        counts = self.draw_counts(np.bincount(pool.labels), order, rng)
        samples = [
            rng.permutation(np.flatnonzero(pool.labels == label))
            for label in range(counts.shape[1])
        ]
        owners = [np.repeat(order, column) for column in counts[order].T]
        return group_by_owner(np.concatenate(samples), np.concatenate(owners), clients)

    def draw_counts(
        self, per_class: np.ndarray, order: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw how many samples of each class each client gets (client, class). Clients draw in
        this `order` from `per_class` samples."""
        size, larger = divmod(int(per_class.sum()), len(order))
        counts = np.zeros((len(order), len(per_class)), dtype=np.int64)
        left = per_class.copy()
        for client in order:
            available = np.flatnonzero(left)
            chosen = rng.permutation(available)[: rng.integers(self.low, self.high, endpoint=True)]
            counts[client] = _class_counts(size + (client < larger), chosen, left)
            left -= counts[client]
        return counts


def _class_counts(size: int, chosen: np.ndarray, left: np.ndarray) -> np.ndarray:
    """How many of a client's `size` samples to take of each class: equally many of the chosen
    classes, and what these lack from all classes, those with the most samples left first."""
    counts = np.zeros_like(left)
    equal, extra = divmod(size, len(chosen))
    counts[chosen] = np.minimum(equal + (np.arange(len(chosen)) < extra), left[chosen])
    rest = left - counts
    fullest = np.argsort(-rest, kind="stable")
    before = np.cumsum(rest[fullest]) - rest[fullest]
    counts[fullest] += np.clip(size - counts.sum() - before, 0, rest[fullest])
    return counts
