"""The samples that clients have not used yet in an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Pools:
    """The unused samples of each client and label in an epoch, in random order. `counts` has a row
    for each label: how many samples of it each client holds."""

    def __init__(
        self,
        shards: Sequence[np.ndarray],
        labels: np.ndarray,
        counts: np.ndarray,
        rng: np.random.Generator,
    ):
        self.counts, self._rng = counts, rng
        self._left = [self._by_label(shard, labels) for shard in shards]
        self._used: list[list[list[int]]] = [self._by_label(shard[:0], labels) for shard in shards]

    def _by_label(self, shard: np.ndarray, labels: np.ndarray) -> list[list[int]]:
        mixed = self._rng.permutation(shard)
        order = np.argsort(labels[mixed], kind="stable")
        ends = np.bincount(labels[mixed], minlength=len(self.counts)).cumsum()
        return [part.tolist() for part in np.split(mixed[order], ends[:-1])]

    def draw(self, client: int, label: int) -> int | None:
        """Draw a sample of this label that the client has not used yet; None if none is left."""
        left = self._left[client][label]
        if not left:
            return None
        self._used[client][label].append(left.pop())
        return self._used[client][label][-1]

    def refill(self, label: int) -> None:
        """Make all samples of a label available again, newly shuffled."""
        for left, used in zip(self._left, self._used, strict=True):
            left[label] = self._rng.permutation(left[label] + used[label]).tolist()
            used[label] = []
