"""Seol and Kim's selection: a fixed set of clients and samples with nearly uniform labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.abilities import Allocating
from cohort.selection.entropy import entropy_bits
from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class KL(Selector, Allocating):
    """Adds clients from the largest to the smallest, until the cohort is full or the pooled labels'
    Kullback-Leibler divergence from uniform is below theta.

    The first client uses all its samples. A further one is added if it holds samples of the class
    that is rarest so far; of each class it uses at most as many as bring the pool up to the count
    of the first client's most frequent class.

    The paper tests the divergence after each pass over all clients, which can exceed the cohort;
    here it is tested after each client. The set is the same in every round; which of its samples a
    client uses is drawn anew.
    """

    name: ClassVar[str] = "kl"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    theta: float = parameter(
        0.01, minimum=0, help="divergence in nats below which the pooled labels count as uniform"
    )

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array(list(self._add_clients(candidates, view)))

    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        """How many samples of each class each client trains on (client, class)."""
        return np.array(list(self._add_clients(np.sort(cohort), view).values()))

    def _add_clients(self, candidates: np.ndarray, view: View) -> dict[int, np.ndarray]:
        """Add clients until the labels are even; return the class counts of each added client, in
        the order in which they were added."""
        assert view.label_counts is not None
        counts = view.label_counts
        waiting = candidates[np.argsort(-view.sizes[candidates], kind="stable")].tolist()
        first = waiting.pop(0)
        taken = {first: counts[first]}
        pooled = counts[first].copy()
        most = pooled.max()
        progress = True
        while progress:
            progress = False
            for client in list(waiting):
                if len(taken) == view.cohort or self._is_even(pooled):
                    return taken
                if counts[client][pooled.argmin()] > 0:
                    taken[client] = np.minimum(most - pooled, counts[client])
                    pooled += taken[client]
                    waiting.remove(client)
                    progress = True
        return taken

    def _is_even(self, pooled: np.ndarray) -> bool:
        return float(np.log(len(pooled)) - entropy_bits(pooled) * np.log(2)) < self.theta
