"""The base of selectors that know clients by their last updates."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cohort.selection.draws import leave_out_empty
from cohort.selection.selector import Reports, Selector, State, View


class LastUpdates(Selector):
    """Base of selectors that know each client by what it last reported of one `need`. Clients that
    never answered are chosen first, at random, those without samples last; `choose_seen` chooses
    the rest of the cohort."""

    need: ClassVar[str]

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {
            "seen": np.zeros(view.clients, dtype=bool),
            "updates": np.zeros((view.clients, 0), dtype=np.float32),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        candidates = leave_out_empty(candidates, view)
        is_seen = state["seen"][candidates]
        unseen = rng.permutation(candidates[~is_seen])[: view.cohort]
        seen = candidates[is_seen]
        count = min(view.cohort - len(unseen), len(seen))
        return np.concatenate([unseen, self.choose_seen(state, seen, count, view, rng)])

    def choose_seen(
        self, state: State, seen: np.ndarray, count: int, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        """Choose `count` of the candidates that answered before (`seen`)."""
        raise NotImplementedError

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        updates = reports[self.need]
        answered = ~np.isnan(updates).any(axis=1)
        after = {name: array.copy() for name, array in state.items()}
        if not after["updates"].size:
            after["updates"] = np.zeros((view.clients, updates.shape[1]), dtype=np.float32)
        after["seen"][cohort[answered]] = True
        after["updates"][cohort[answered]] = updates[answered]
        return after
