"""DivFL (Balakrishnan et al., ICLR 2022): cohorts whose updates stand for those of all clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.selection.last_updates import LastUpdates
from cohort.selection.selector import Reports, State, View

if TYPE_CHECKING:
    from scipy.spatial import distance
else:
    distance = lazy("scipy.spatial.distance")


@dataclass(frozen=True, kw_only=True)
class DivFl(LastUpdates):
    """Chooses, greedily, the clients to whose updates those of all clients are nearest: facility
    location, the sum over clients of the distance to the nearest chosen one.

    Only the clients of a cohort send updates, so that the others are known by their last ones.
    Clients that never answered are chosen first, at random. (The authors' code computes the
    gradients of all clients once, before the first round.)
    """

    name: ClassVar[str] = "divfl"
    need: ClassVar[str] = "update"
    needs: ClassVar[frozenset[str]] = frozenset({need})

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return super().begin(view, rng) | {"distances": np.zeros((view.clients, view.clients))}

    def choose_seen(
        self, state: State, seen: np.ndarray, count: int, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return seen[choose_facilities(state["distances"][np.ix_(state["seen"], seen)], count)]

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        after = super().observe(state, cohort, reports, view)
        clients = cohort[~np.isnan(reports[self.need]).any(axis=1)]
        recent = after["updates"][clients].astype(np.float64)
        columns = [distance.cdist(recent, update[np.newaxis]) for update in after["updates"]]
        rows = np.hstack(columns)  # client by client, as all updates in float64 take memory
        after["distances"][clients] = rows
        after["distances"][:, clients] = rows.T
        return after


def choose_facilities(distances: np.ndarray, count: int) -> np.ndarray:
    """Choose `count` columns greedily such that the sum over rows of the distance (row, column) to
    the nearest chosen column falls most with each; the first of several that are as good."""
    nearest = np.full(len(distances), np.inf)
    chosen: list[int] = []
    for _ in range(count):
        sums = np.minimum(nearest[:, np.newaxis], distances).sum(axis=0)
        sums[chosen] = np.inf
        chosen.append(int(sums.argmin()))
        nearest = np.minimum(nearest, distances[:, chosen[-1]])
    return np.array(chosen, dtype=np.int64)
