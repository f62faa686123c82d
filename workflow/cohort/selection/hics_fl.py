"""HiCS-FL (Chen and Vikalo, NeurIPS 2024): clusters of clients by what their last layer learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.selection.last_updates import LastUpdates
from cohort.selection.pow_d import draw_by_size
from cohort.selection.selector import Reports, State, View

if TYPE_CHECKING:
    from scipy import special
    from scipy.cluster import hierarchy
    from scipy.spatial import distance
else:
    special, hierarchy = lazy("scipy.special"), lazy("scipy.cluster.hierarchy")
    distance = lazy("scipy.spatial.distance")


@dataclass(frozen=True, kw_only=True)
class HicsFl(LastUpdates):
    """Clusters clients by the updates of the last layer's bias, and draws from clusters of diverse
    clients more often, at first (algorithm 1).

    The entropy of the softmax of a client's bias update estimates how diverse its labels are
    (equation 7). Two clients are as far apart as the angle of their updates plus `weight` times the
    difference of their entropies (9). There are as many clusters as clients in a cohort. A cluster
    is drawn with a probability proportional to exp(diversity * rounds left / all rounds * its mean
    entropy), and a client of it in proportion to its number of samples (10); nobody is drawn twice.
    Before that, every client is chosen once.
    """

    name: ClassVar[str] = "hics-fl"
    need: ClassVar[str] = "bias_update"
    needs: ClassVar[frozenset[str]] = frozenset({need})
    temperature: float = parameter(
        0.0025, exclusiveMinimum=0, help="T: of the softmax of a bias update"
    )
    weight: float = parameter(
        10.0, minimum=0, help="lambda: of the difference of entropies in the distance"
    )
    diversity: float = parameter(
        4.0, minimum=0, help="gamma_0: how much more often diverse clusters are drawn at first"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return super().begin(view, rng) | {"round": np.zeros(1, dtype=np.int64)}

    def choose_seen(
        self, state: State, seen: np.ndarray, count: int, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        if not count:
            return seen[:0]
        updates = state["updates"][seen].astype(np.float64)
        entropies = self.entropies(updates)
        clusters = self.clusters(updates, entropies, view.cohort)
        means = np.bincount(clusters, entropies) / np.bincount(clusters)
        left = 1 - state["round"][0] / view.rounds
        chosen: list[int] = []
        for _ in range(count):
            rest = np.setdiff1d(np.arange(len(seen)), chosen)
            open_clusters = np.unique(clusters[rest])
            odds = special.softmax(self.diversity * left * means[open_clusters])
            members = rest[clusters[rest] == rng.choice(open_clusters, p=odds)]
            chosen.append(members[draw_by_size(seen[members], view, 1, rng)[0]])
        return seen[chosen]

    def entropies(self, updates: np.ndarray) -> np.ndarray:
        """The estimated label entropy of each client, in nats, from its bias update."""
        shares = special.softmax(updates / self.temperature, axis=1)
        entropies: np.ndarray = special.entr(shares).sum(axis=1)
        return entropies

    def clusters(self, updates: np.ndarray, entropies: np.ndarray, count: int) -> np.ndarray:
        """The cluster of each client, from 0: Ward's linkage of the rows of distances, as in the
        authors' code."""
        if len(updates) <= count:
            return np.arange(len(updates))
        norms = np.linalg.norm(updates, axis=1)
        norms = np.maximum(np.outer(norms, norms), np.finfo(float).tiny)
        angles = np.arccos(np.clip(updates @ updates.T / norms, -1, 1))
        distances = angles + self.weight * np.abs(entropies[:, np.newaxis] - entropies)
        tree = hierarchy.ward(distance.pdist(distances))
        labels: np.ndarray = hierarchy.cut_tree(tree, count).ravel()
        return labels

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        return super().observe(state, cohort, reports, view) | {"round": state["round"] + 1}
