"""Assignment of clients to scheduled labels: Stratify's Algorithms 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np


class Choice:
    """Chooses a client for each scheduled label, uniformly among those that hold the label or in
    proportion to how many samples of it they hold.

    `counts` has a row for each label: how many samples of it each client holds. Of these counts the
    server needs only which are above zero, unless the choice is `weighted`.
    """

    def __init__(self, counts: np.ndarray, weighted: bool, rng: np.random.Generator):
        self.weights = np.where(counts > 0, counts if weighted else 1.0, 0.0)
        self.available, self.rng = self.weights.copy(), rng

    def remove(self, client: int, label: int) -> None:
        """Ask this client no more for this label: it has reported that it has no sample left."""
        self.available[label, client] = 0

    def restore(self, label: int) -> None:
        """Make all holders of a label eligible again."""
        self.available[label] = self.weights[label]

    def has_client_for(self, label: int) -> bool:
        """Whether any client can be asked for a label."""
        return bool(self.available[label].any())

    def chunk_tasks(
        self, chunk: Sequence[int], retained: int
    ) -> Iterator[tuple[int, Sequence[int]]]:
        """Assign a chunk of labels (Algorithm 1): yield one client after another with its
        consecutive labels.

        For each label a few of the available clients are `retained` at random. From the first label
        on, the client is taken that can serve the longest run of labels, and so on from there.
        """
        able = self._draw_retained(sorted(set(chunk)), retained)
        for client, start, end in longest_runs([able[label] for label in chunk], self.rng):
            yield client, chunk[start:end]

    def draw_clients(self, label: int, number: int) -> list[int]:
        """Draw so many clients for one label (Algorithm 2), each once if there are enough."""
        available = self.available[label]
        (some,) = np.nonzero(available)
        if number > len(some):
            shares = available[some] / available[some].sum()
            return [int(client) for client in self.rng.choice(some, number, p=shares)]
        return [int(client) for client in self._draw_orders([label])[0][:number]]

    def _draw_orders(self, labels: Sequence[int]) -> list[np.ndarray]:
        """Draw the order in which each label's available clients come up."""
        weights = self.available[labels]
        with np.errstate(divide="ignore"):
            arrivals = self.rng.standard_exponential(weights.shape) / weights
        order = arrivals.argsort(axis=1)
        return [row[:count] for row, count in zip(order, (weights > 0).sum(axis=1), strict=True)]

    def _draw_retained(self, labels: Sequence[int], number: int) -> Mapping[int, int]:
        """Draw the retained clients of each label, as the bits of a number."""
        drawn = self._draw_orders(labels)
        return {label: _bits(row[:number]) for label, row in zip(labels, drawn, strict=True)}


def longest_runs(able: Sequence[int], rng: np.random.Generator) -> Iterator[tuple[int, int, int]]:
    """Cut a chunk into tasks: a client, the first place of its run, and the place after the last.

    `able` says for each place which clients can serve it, as the bits of a number. Each task goes
    to a client that can serve the most places in a row; ties are broken at random.
    """
    start = 0
    while start < len(able):
        longest, end = able[start], start + 1
        while end < len(able) and longest & able[end]:
            longest &= able[end]
            end += 1
        yield _random_bit(longest, rng), start, end
        start = end


def _bits(positions: np.ndarray) -> int:
    """The number with these bits set, each given once."""
    return sum(1 << position for position in positions.tolist())


def _random_bit(bits: int, rng: np.random.Generator) -> int:
    """Draw the position of one of the set bits of a number at random."""
    positions = [position for position in range(bits.bit_length()) if bits >> position & 1]
    return positions[int(rng.integers(len(positions)))] if len(positions) > 1 else positions[0]


def retained_count(share: float, clients: int) -> int:
    """The number of clients that are retained for each label: the share of all clients, rounded
    up."""
    return math.ceil(Fraction(str(share)) * clients)  # 0.28 * 25 > 7 in floating point
