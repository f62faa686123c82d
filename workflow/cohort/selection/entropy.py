"""FedEntOpt: the cohort whose pooled labels have the highest entropy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.components import parameter
from cohort.selection.selector import Need, Selector, State, View

TIE = 1e-12  # rounding decides many picks of the raw argmax; entropies this close are equal, and the lowest index wins


@dataclass(frozen=True, kw_only=True)
class Entropy(Selector):
    """The first client is drawn at random, each further one makes the entropy of the pooled label counts as large as it can be.

    Clients chosen lately rest in a first-in-first-out buffer. Algorithm 1 of the paper prints the eviction inside the client loop; evicting
    at the end of the round is what reproduces its Table VI.
    """

    name: ClassVar[str] = "entropy"
    needs: ClassVar[frozenset[Need]] = frozenset({"label_counts"})
    buffer: float = parameter(0.5, minimum=0, exclusiveMaximum=1, help="share of all clients that rests after having been chosen")

    def check(self, clients: int, cohort: int) -> None:
        if round(self.buffer * clients) + cohort > clients:
            raise ValueError(f"a buffer of {self.buffer:g} of {clients} clients leaves fewer than the {cohort} of a cohort")

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"buffer": np.empty(0, dtype=np.int64)}

    def select(self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        assert view.label_counts is not None
        pool = np.setdiff1d(candidates, state["buffer"])
        cohort = [int(rng.choice(pool))]
        pooled = view.label_counts[cohort[0]].astype(np.float64)
        while len(cohort) < view.cohort:
            pool = pool[pool != cohort[-1]]
            entropies = entropy_bits(pooled + view.label_counts[pool])
            best = int(pool[np.flatnonzero(entropies >= entropies.max() - TIE)[0]])
            cohort.append(best)
            pooled = pooled + view.label_counts[best]
        return np.array(cohort)

    def observe(self, state: State, cohort: np.ndarray, reports: Mapping[Need, np.ndarray], view: View) -> State:
        keep = round(self.buffer * view.clients)
        queue = np.concatenate([state["buffer"], cohort])
        return {"buffer": queue[len(queue) - min(keep, len(queue)) :]}


def entropy_bits(counts: np.ndarray) -> np.ndarray:
    """Shannon entropy in bits of each row of counts, 0 log 0 = 0; an empty row has none."""
    shares = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=-1)
