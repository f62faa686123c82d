"""Fed-CBS (Zhang et al., ICML 2023): cohorts whose samples together have balanced classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import draw_without_replacement
from cohort.selection.selector import Reports, Selector, State, View

TINY = 1e-12  # the imbalance of perfectly balanced clients, so that their weights are finite


@dataclass(frozen=True, kw_only=True)
class FedCbs(Selector):
    """Draws one client after another, each the more likely the less imbalanced the classes of the
    cohort are with it.

    The imbalance is the squared distance of the class shares from equal ones (QCID). The weight of
    the m-th client is that of the cohort with it to the power of -m; the first client's has a bonus
    for those that were rarely chosen: exploration * sqrt(3 ln(round) / (2 times chosen)). Counts
    begin at one, because the paper's bonus is infinite at none.
    """

    name: ClassVar[str] = "fed-cbs"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    exploration: float = parameter(
        10.0, minimum=0, help="lambda: weight of the bonus of rarely chosen clients"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {
            "round": np.ones(1, dtype=np.int64),
            "count": np.ones(view.clients, dtype=np.int64),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        assert view.label_counts is not None
        counts = view.label_counts[candidates].astype(np.float64)
        held, left = np.zeros(counts.shape[1]), np.arange(len(candidates))
        cohort: list[int] = []
        while len(cohort) < view.cohort:
            weights = -(len(cohort) + 1) * np.log(imbalance(held + counts[left]) + TINY)
            if not cohort:
                weights = np.log(np.exp(weights) + self.bonus(state, candidates))
            (drawn,) = draw_without_replacement(weights, 1, rng)
            cohort.append(candidates[left[drawn]])
            held, left = held + counts[left[drawn]], np.delete(left, drawn)
        return np.array(cohort)

    def bonus(self, state: State, candidates: np.ndarray) -> np.ndarray:
        """The exploration bonus in each candidate's weight when the first client of a cohort is
        drawn."""
        return self.exploration * np.sqrt(
            3 * np.log(state["round"]) / (2 * state["count"][candidates])
        )

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        count = state["count"].copy()
        count[cohort] += 1
        return {"round": state["round"] + 1, "count": count}


def imbalance(counts: np.ndarray) -> np.ndarray:
    """The quadratic class imbalance degree of label counts (row, class): the sum of squares of what
    class shares differ from equal ones. Rows without samples have the largest, 1 - 1/classes."""
    totals, classes = counts.sum(axis=1, keepdims=True), counts.shape[1]
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return np.where(totals[:, 0] > 0, ((shares - 1 / classes) ** 2).sum(axis=1), 1 - 1 / classes)
