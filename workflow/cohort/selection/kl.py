"""Seol and Kim's selection: one fixed set of clients, and of their samples, whose pooled labels are nearly uniform."""

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
    """Clients are taken from the largest to the smallest. The first gives all its samples; each further one gives of each class what is
    missing to the first one's most frequent class, if it holds any of the class that is rarest so far. It ends when the cohort is full or
    the Kullback-Leibler divergence of the pooled labels from the uniform distribution is below theta.

    As printed the divergence is tested after a whole pass over the clients, which can take more of them than the cohort has; it is tested
    after each client here. The set is the same in every round; which of its samples a client uses is drawn anew.
    """

    name: ClassVar[str] = "kl"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    theta: float = parameter(
        0.01, minimum=0, help="the divergence, in nats, at which the pooled labels are even enough"
    )

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return np.array(list(self._taken(candidates, view)))

    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        return np.array(list(self._taken(np.sort(cohort), view).values()))

    def _taken(self, candidates: np.ndarray, view: View) -> dict[int, np.ndarray]:
        """The clients and how many samples of each class each of them gives, in the order in which they are taken."""
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
