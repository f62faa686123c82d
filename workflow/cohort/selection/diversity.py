"""AML's diversity score: clients with many, even and unusual labels are chosen more often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cohort.core.components import parameter
from cohort.selection.selector import Selector, State, View

ROUNDING = 1e-12  # nats: a divergence below is rounding between equal distributions


@dataclass(frozen=True, kw_only=True)
class Diversity(Selector):
    """Draws the cohort with probabilities that follow a fixed score of each client: how diverse its
    own labels are, and how far its label distribution is from those of the other clients.

    The paper means by the latter the mean Jensen-Shannon divergence to all other clients. Its code
    computes the distance, the square root of the divergence, averages it over all clients, the
    client itself included, and divides it by the largest mean.
    """

    name: ClassVar[str] = "diversity"
    needs: ClassVar[frozenset[str]] = frozenset({"label_counts"})
    mix: float = parameter(
        0.5,
        minimum=0,
        maximum=1,
        help="lambda: weight of the number of classes against the entropy of the labels",
    )
    alpha: float = parameter(
        0.5,
        minimum=0,
        maximum=1,
        help="weight of a client's own diversity against its distance to the others",
    )
    measure: Literal["distance", "divergence"] = parameter(
        "distance", help="the Jensen-Shannon distance (as run) or divergence (as written)"
    )

    def version(self) -> int:
        return 2 if self.measure == "divergence" else 1

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
        """The score of each client, by which it is drawn."""
        classes = label_counts.shape[1]
        own = self.mix * (label_counts > 0).sum(axis=1) / classes + (1 - self.mix) * entropy(
            row_shares(label_counts)
        ) / np.log(classes)
        return self.alpha * own + (1 - self.alpha) * self._distances(row_shares(label_counts))

    def _distances(self, mixes: np.ndarray) -> np.ndarray:
        """The distance of each client's label distribution from those of the other clients."""
        divergences = js_divergences(mixes)
        if self.measure == "divergence":
            return divergences.sum(axis=1) / max(len(mixes) - 1, 1)
        distances = np.sqrt(divergences).mean(axis=1)
        return distances / max(distances.max(), np.finfo(float).tiny)


def row_shares(counts: np.ndarray) -> np.ndarray:
    """Divide each row by its sum; a row of zeros stays zero."""
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def js_divergences(mixes: np.ndarray) -> np.ndarray:
    """The Jensen-Shannon divergence of each row to each row, in nats."""
    entropies = entropy(mixes)
    divergences = np.stack([entropy((mix + mixes) / 2) for mix in mixes])
    divergences -= (entropies[:, np.newaxis] + entropies) / 2
    divergences[divergences < ROUNDING] = 0
    return divergences


def entropy(mixes: np.ndarray) -> np.ndarray:
    """Shannon entropy of each row in nats, with 0 log 0 = 0."""
    return -(mixes * np.log(mixes, out=np.zeros_like(mixes), where=mixes > 0)).sum(axis=1)
