"""What a partition scheme is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.component_names import Named

NO_GROUPS = "it deals samples by their groups (domains, roles), and this data set has none"
Parts = list[np.ndarray]


@dataclass(frozen=True)
class Pool:
    """What is dealt: the label of each sample and, where the data set has groups (domains, roles), the number of its group."""

    labels: np.ndarray
    groups: np.ndarray | None = None

    def known_groups(self) -> np.ndarray:
        """The groups, for a scheme that cannot do without."""
        if self.groups is None:
            raise ValueError(NO_GROUPS)
        return self.groups


@dataclass(frozen=True, kw_only=True)
class Scheme(Named):
    """A rule that deals samples to clients."""

    exact: ClassVar[bool] = (
        True  # every sample is dealt to one client; a scheme that is not exact shares samples or leaves some out
    )

    def versions(self) -> dict[str, int]:
        """The science versions that its numbers depend on."""
        return {f"partition:{self.name}": self.science}

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        """Raise ValueError when no such partition can exist; `groups` is how many the data set has, if it has any."""
        if clients > samples:
            raise ValueError(f"{samples} samples cannot be dealt to {clients} clients")

    def scaled(self, share: float) -> Scheme:
        """The scheme for a share of the samples: limits that count samples shrink with them."""
        return self

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        """For each client the indices of its samples in the pool."""
        raise NotImplementedError

    def borrow(self, parts: Parts, rng: np.random.Generator) -> tuple[Parts, Parts]:
        """For each client what it keeps of its part, and further samples, which lie at another client too: everything and none, unless a
        name declares an overlap."""
        return parts, [np.empty(0, dtype=np.int64) for _ in parts]


def by_owner(samples: np.ndarray, owners: np.ndarray, clients: int) -> Parts:
    """For each client the samples that it owns, in their order: one sort, however many classes and clients there are."""
    order = np.argsort(owners, kind="stable")
    return np.split(samples[order], np.cumsum(np.bincount(owners, minlength=clients))[:-1])
