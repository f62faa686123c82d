"""Skewed participation: some clients are chosen much more often than others (AML, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import draw_without_replacement
from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class Skewed(Selector):
    """Draws clients without replacement, with probabilities from a Dirichlet distribution.

    AML's code draws new probabilities in every round. Averaged over rounds, every client is then
    chosen equally often, which is why its curves do not depend on gamma. The paper describes
    probabilities that are drawn once.
    """

    name: ClassVar[str] = "skewed"
    gamma: float = parameter(1.0, exclusiveMinimum=0, help="concentration: smaller is more skewed")
    redraw: bool = parameter(
        True, help="draw new probabilities in every round (AML's code) or once (its paper)"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {} if self.redraw else {"log_weight": self.log_weights(view.clients, rng)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        weights = self.log_weights(view.clients, rng) if self.redraw else state["log_weight"]
        return candidates[draw_without_replacement(weights[candidates], view.cohort, rng)]

    def log_weights(self, clients: int, rng: np.random.Generator) -> np.ndarray:
        """Logarithms of Dirichlet probabilities, up to a constant.

        For a small gamma the probabilities themselves underflow, so a Gamma(gamma) draw is computed
        as Gamma(gamma + 1) times U^(1 / gamma), in logarithms.
        """
        logs: np.ndarray = (
            np.log(rng.gamma(self.gamma + 1, size=clients))
            + np.log1p(-rng.random(clients)) / self.gamma
        )
        return logs
