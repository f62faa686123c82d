"""DivFL (Balakrishnan et al., ICLR 2022): cohorts whose updates stand for those of all clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.selection.selector import Reports, Selector, State, View

if TYPE_CHECKING:
    from scipy.spatial import distance
else:
    distance = lazy("scipy.spatial.distance")


@dataclass(frozen=True, kw_only=True)
class DivFl(Selector):
    """Chooses, greedily, the clients to whose updates those of all clients are nearest: facility
    location, the sum over clients of the distance to the nearest chosen one (equation 5).

    Only the clients of a cohort send updates, so that the others are known by their last ones.
    Clients that never answered are chosen first, at random. (The authors' code computes the
    gradients of all clients once, before the first round.)
    """

    name: ClassVar[str] = "divfl"
    needs: ClassVar[frozenset[str]] = frozenset({"update"})

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {
            "seen": np.zeros(view.clients, dtype=bool),
            "updates": np.zeros((view.clients, 0), dtype=np.float32),
            "distances": np.zeros((view.clients, view.clients)),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        is_seen = state["seen"][candidates]
        unseen = rng.permutation(candidates[~is_seen])[: view.cohort]
        known = candidates[is_seen]
        count = min(view.cohort - len(unseen), len(known))
        distances = state["distances"][np.ix_(state["seen"], known)]
        return np.concatenate([unseen, known[facilities(distances, count)]])

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        answered = ~np.isnan(reports["update"]).any(axis=1)
        clients, updates = cohort[answered], reports["update"][answered].astype(np.float32)
        after = {name: array.copy() for name, array in state.items()}
        if not after["updates"].size:
            after["updates"] = np.zeros((view.clients, updates.shape[1]), dtype=np.float32)
        after["seen"][clients] = True
        after["updates"][clients] = updates
        rows = distance.cdist(updates, after["updates"])
        after["distances"][clients] = rows
        after["distances"][:, clients] = rows.T
        return after


def facilities(distances: np.ndarray, count: int) -> np.ndarray:
    """Choose `count` columns greedily such that the sum over rows of the distance (row, column) to
    the nearest of them falls most with each; the first of several that are as good."""
    nearest = np.full(len(distances), np.inf)
    chosen: list[int] = []
    for _ in range(count):
        sums = np.minimum(nearest[:, np.newaxis], distances).sum(axis=0)
        sums[chosen] = np.inf
        chosen.append(int(sums.argmin()))
        nearest = np.minimum(nearest, distances[:, chosen[-1]])
    return np.array(chosen, dtype=np.int64)
