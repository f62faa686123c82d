"""Base class of the partition schemes, and what they deal."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from cohort.core.components import NameEncoded

NO_GROUPS = "it deals samples by their groups (domains, roles), and this data set has none"
Parts = list[np.ndarray]
"""For each client, indices of samples."""


@dataclass(frozen=True)
class Pool:
    """The samples to deal: their labels and, if the data set has groups (domains, roles), these."""

    labels: np.ndarray
    groups: np.ndarray | None = None

    def known_groups(self) -> np.ndarray:
        """The groups of the samples; ValueError if the data set has none."""
        if self.groups is None:
            raise ValueError(NO_GROUPS)
        return self.groups


@dataclass(frozen=True, kw_only=True)
class Scheme(NameEncoded):
    """A rule that deals samples to clients."""

    exact: ClassVar[bool] = True
    """Whether each sample goes to exactly one client, neither shared nor left out."""

    needs_groups: ClassVar[bool] = False
    """Whether it deals samples by their groups, which the data set must then have."""

    def versions(self, holdout: float = 0.0) -> dict[str, int]:
        """The science versions that shards depend on, if each client holds out this share."""
        return {f"partition:{self.name}": self.science}

    def check(self, classes: int, clients: int, samples: int, groups: int | None = None) -> None:
        """Raise ValueError if the scheme cannot deal so many samples, classes and groups to so many
        clients. `groups` is None if the data set has none."""
        if self.needs_groups and groups is None:
            raise ValueError(NO_GROUPS)
        if self.exact and clients > samples:
            raise ValueError(f"{samples} samples cannot be dealt to {clients} clients")

    def scaled(self, share: float) -> Self:
        """The scheme for a share of the samples: limits that count samples shrink with it."""
        return self

    def deal(self, pool: Pool, clients: int, rng: np.random.Generator) -> Parts:
        """Deal the pool to clients: for each client, the indices of its samples."""
        raise NotImplementedError

    def borrow(self, parts: Parts, rng: np.random.Generator) -> tuple[Parts, Parts]:
        """Split what clients hold after borrowing: the samples that each keeps of its part, and
        those of others that it holds too. Schemes other than an overlap borrow nothing."""
        return parts, [np.empty(0, dtype=np.int64) for _ in parts]

    def overlapping_clients(self, clients: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the numbers of the overlapping clients, to which `borrow` with the same generator
        gives samples of others, perhaps none. Schemes other than an overlap have no such client."""
        return np.empty(0, dtype=np.int64)


def group_by_owner(samples: np.ndarray, owners: np.ndarray, clients: int) -> Parts:
    """Group samples by the client that owns them, keeping their order."""
    order = np.argsort(owners, kind="stable")
    return np.split(samples[order], np.cumsum(np.bincount(owners, minlength=clients))[:-1])
