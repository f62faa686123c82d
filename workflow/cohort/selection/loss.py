"""PECO's loss-based baseline: clients with the highest loss train next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.draws import leave_out_empty, top_clients
from cohort.selection.selector import Reports, Selector, State, View


@dataclass(frozen=True, kw_only=True)
class HighestLoss(Selector):
    """Chooses the candidates whose local models had the highest loss on the reserved test samples
    when they were last evaluated. Others come first, clients without samples last; ties are broken
    at random."""

    name: ClassVar[str] = "loss"
    needs: ClassVar[frozenset[str]] = frozenset({"reserved_loss"})

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {"loss": np.full(view.clients, np.inf)}

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        candidates = leave_out_empty(candidates, view)
        return top_clients(state["loss"][candidates], candidates, view.cohort, rng)

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        (need,) = self.needs
        measured, loss = reports[need], state["loss"].copy()
        loss[cohort[~np.isnan(measured)]] = measured[~np.isnan(measured)]
        return {"loss": loss}
