"""FedEntOpt: the cohort whose pooled labels have the highest entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.privacy.label_report import LabelReport
from cohort.selection.selector import Reports, Selector, State, View

# Ties are common, and rounding would break them: entropies this close are equal, and the lowest
# index wins.
TIE = 1e-12
BLOCK = 512  # rows
ROUGH = 1e-3  # bits: more than the rounding error of an entropy in float32
TINY, SOME = 1e-30, 1e-20  # a count of zero is replaced by TINY; a total below SOME is empty


@dataclass(frozen=True, kw_only=True)
class Entropy(Selector):
    """Draws the first client at random, then greedily adds the client that maximizes the entropy of
    the pooled label counts.

    Recently chosen clients are excluded while they are in a first-in-first-out buffer. Algorithm 1
    of the FedEntOpt paper evicts inside the client loop; evicting at the end of the round is what
    reproduces its Table VI. Clients may add Laplace noise to the counts that they upload once, and
    some may misreport them, a limitation that the paper names.
    """

    name: ClassVar[str] = "entropy"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    buffer: float = parameter(
        0.5,
        minimum=0,
        exclusiveMaximum=1,
        help="capacity of the buffer of resting clients, as a share of all clients",
    )
    evict: Literal["round", "pick"] = parameter(
        "round",
        help="when the buffer evicts: after the round, or after each pick, as in Algorithm 1",
    )
    epsilon: float = parameter(
        0.0,
        minimum=0,
        help="differential privacy of the uploaded counts; smaller is noisier, 0 adds no noise",
    )
    liars: float = parameter(
        0.0, minimum=0, maximum=1, help="share of clients that report a uniform distribution"
    )

    def check(self, clients: int, cohort: int) -> None:
        if round(self.buffer * clients) + cohort > clients:
            raise ValueError(
                f"a buffer of {self.buffer:g} of {clients} clients leaves fewer than the {cohort} "
                "of a cohort"
            )

    @property
    def label_report(self) -> LabelReport:
        return LabelReport(epsilon=self.epsilon, liars=self.liars)

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"buffer": np.empty(0, dtype=np.int64)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        assert view.label_counts is not None
        counts = view.label_counts
        pool = np.setdiff1d(candidates, state["buffer"])
        rows = counts[pool].astype(np.float32)
        cohort = [int(rng.choice(pool))]
        pooled = counts[cohort[0]].astype(np.float64)
        while len(cohort) < view.cohort:
            if self.evict == "pick":
                pool = np.setdiff1d(
                    candidates, self._next_buffer(state["buffer"], np.array(cohort), view)
                )
                rows = counts[pool].astype(np.float32)
            rough = entropy_bits(rows, pooled.astype(np.float32))
            rough[np.isin(pool, cohort)] = -1
            close = pool[rough >= rough.max() - ROUGH]
            entropies = entropy_bits(counts[close], pooled)
            best = int(close[np.flatnonzero(entropies >= entropies.max() - TIE)[0]])
            cohort.append(best)
            pooled = pooled + counts[best]
        return np.array(cohort)

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        return state | {"buffer": self._next_buffer(state["buffer"], cohort, view)}

    def _next_buffer(self, buffer: np.ndarray, chosen: np.ndarray, view: View) -> np.ndarray:
        """The buffer after the chosen clients entered and the oldest were evicted."""
        queue = np.concatenate([buffer, chosen])
        return queue[len(queue) - min(round(self.buffer * view.clients), len(queue)) :]


def entropy_bits(counts: np.ndarray, added: np.ndarray | float = 0.0) -> np.ndarray:
    """Shannon entropy in bits of each row of `counts + added`; 0 for an empty row.

    Negative counts, which noise can cause, count as 0. Rows are processed in blocks that fit into a
    processor's cache.
    """
    rows = counts.reshape(-1, counts.shape[-1])
    entropies = np.empty(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = np.maximum(rows[begin : begin + BLOCK] + added, TINY)
        total = block.sum(axis=1)
        nats = np.log(total) - np.einsum("rc,rc->r", block, np.log(block)) / total
        entropies[begin : begin + BLOCK] = np.where(
            total > SOME, np.maximum(nats, 0) / np.log(2), 0
        )
    return entropies.reshape(counts.shape[:-1])
