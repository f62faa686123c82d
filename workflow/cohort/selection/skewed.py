"""Skewed participation: some clients take part much more often than others (AML, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class Skewed(Selector):
    """Clients are drawn one after another with probabilities that come from a Dirichlet distribution.

    AML's code draws new probabilities in every round. In the mean over rounds every client is then chosen equally often, which is why its
    curves do not depend on gamma; probabilities that are drawn once are what the paper describes.
    """

    name: ClassVar[str] = "skewed"
    gamma: float = parameter(
        1.0, exclusiveMinimum=0, help="the smaller, the fewer clients have most of the probability"
    )
    redraw: bool = parameter(
        True, help="draw new probabilities in every round (as run) or once (as written)"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {} if self.redraw else {"log_weight": self.log_weights(view.clients, rng)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        weights = self.log_weights(view.clients, rng) if self.redraw else state["log_weight"]
        keys = weights[candidates] + rng.gumbel(
            size=len(candidates)
        )  # the largest are a draw without replacement
        return candidates[np.argsort(-keys)[: view.cohort]]

    def log_weights(self, clients: int, rng: np.random.Generator) -> np.ndarray:
        """Logarithms of Dirichlet shares but for a constant. Shares themselves would be zero in floating point where gamma is small:
        G(gamma) is G(gamma + 1) times U^(1 / gamma)."""
        logs: np.ndarray = (
            np.log(rng.gamma(self.gamma + 1, size=clients))
            + np.log1p(-rng.random(clients)) / self.gamma
        )
        return logs
