"""Round-robin: every client takes part equally often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.selector import Reports, Selector, State, View


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Selector):
    """Chooses the candidates whose last turn is longest ago, in an order drawn before the first
    round. Whoever is chosen has had its turn, whether it answers or not."""

    name: ClassVar[str] = "round-robin"

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"order": rng.permutation(view.clients)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        order = state["order"]
        return order[np.isin(order, candidates)][: view.cohort]

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        waiting = state["order"][~np.isin(state["order"], cohort)]
        return {"order": np.concatenate([waiting, cohort])}
