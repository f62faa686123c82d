"""AML's diversity score: clients whose labels are many and even, and unlike those of the others, are chosen more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.selection.selector import Selector, State, View

ROUNDING = 1e-12  # nats between two mixes that are the same


@dataclass(frozen=True, kw_only=True)
class Diversity(Selector):
    """A cohort is drawn with probabilities that follow a score of each client, which stays the same for the whole run: how diverse its own
    labels are, and how far its mix of labels lies from those of the others in the mean.

    The paper speaks of the Jensen-Shannon divergence; its code takes the distance, the square root of the divergence.
    """

    name: ClassVar[str] = "diversity"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    mix: float = parameter(
        0.5,
        minimum=0,
        maximum=1,
        help="lambda: the number of classes (1) against the entropy of labels (0)",
    )
    alpha: float = parameter(
        0.5,
        minimum=0,
        maximum=1,
        help="a client's own diversity (1) against its distance to the others (0)",
    )
    measure: Literal["distance", "divergence"] = parameter(
        "distance", help="the Jensen-Shannon distance (as run) or divergence (as written)"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        assert view.label_counts is not None
        scores = self.scores(view.label_counts)
        weights = (scores - scores.min()) / (np.ptp(scores) + 1e-12) + 0.01
        return {"score": scores, "weight": weights}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        weights = state["weight"][candidates]
        return rng.choice(candidates, view.cohort, replace=False, p=weights / weights.sum())

    def scores(self, label_counts: np.ndarray) -> np.ndarray:
        """The score of each client."""
        classes = label_counts.shape[1]
        own = self.mix * (label_counts > 0).sum(axis=1) / classes + (1 - self.mix) * entropy(
            shares(label_counts)
        ) / np.log(classes)
        distance = mean_distance(shares(label_counts), self.measure)
        return self.alpha * own + (1 - self.alpha) * distance / max(
            distance.max(), np.finfo(float).tiny
        )


def shares(counts: np.ndarray) -> np.ndarray:
    """Each row divided by its sum; an empty row stays empty."""
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def mean_distance(mixes: np.ndarray, measure: str) -> np.ndarray:
    """For each row the mean of its Jensen-Shannon distances to all rows, itself included (natural logarithm)."""
    entropies = entropy(mixes)
    means = np.empty(len(mixes))
    for row, mix in enumerate(mixes):
        divergence = entropy((mix + mixes) / 2) - (entropies[row] + entropies) / 2
        divergence[divergence < ROUNDING] = 0
        means[row] = (np.sqrt(divergence) if measure == "distance" else divergence).mean()
    return means


def entropy(mixes: np.ndarray) -> np.ndarray:
    """Shannon entropy of each row in nats, 0 log 0 = 0."""
    return -(mixes * np.log(mixes, out=np.zeros_like(mixes), where=mixes > 0)).sum(axis=1)
