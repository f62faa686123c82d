"""Power-of-choice with losses that are known anyhow: those of the last round of each client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import pool_size, top_clients
from cohort.selection.pow_d import draw_by_size
from cohort.selection.selector import State, View
from cohort.selection.training_loss import HighestTrainingLoss


@dataclass(frozen=True, kw_only=True)
class RpowD(HighestTrainingLoss):
    """Draws d clients with probabilities proportional to their numbers of samples, and chooses
    those that reported the highest mean loss of their local steps when they last trained (rpow-d
    in section 4). A client that never trained has an infinite loss; ties are broken at random."""

    name: ClassVar[str] = "rpow-d"
    pool: float = parameter(
        2.0, minimum=1, help="d: the number of clients drawn, as a multiple of the cohort"
    )

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        size = pool_size(self.pool, len(candidates), view.cohort)
        pool = candidates[draw_by_size(candidates, view, size, rng)]
        return top_clients(state["loss"][pool], pool, view.cohort, rng)
