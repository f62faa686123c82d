"""Unbiased sampling: in expectation over cohorts, a round's weighted updates are the size-weighted
average of all clients' updates (for `optimal-sampling`, nearly that of its pool's)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.selection.pools import RandomPool
from cohort.selection.selector import Clients, Probing, Rng, Selector, State, UpdateWeighing, View
from cohort.selection.updates import LastUpdates, angles

scipy = lazy("scipy")


def sizes_of(candidates: Clients, view: View) -> np.ndarray:
    """The whole number of samples of each candidate; 1 for each if nobody has any."""
    sizes: np.ndarray = view.sizes[candidates].astype(np.int64)
    return sizes if sizes.any() else np.ones_like(sizes)


class BySize(Selector, UpdateWeighing):
    """Draws clients with replacement by their sizes, and weighs all draws alike (MD sampling)."""

    name: ClassVar[str] = "by-size"

    def urns(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        """How often each candidate is in the urn of each draw (draw, candidate). Every urn holds as
        much as all candidates have samples."""
        return np.tile(sizes_of(candidates, view), (view.cohort, 1))

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        urns = self.urns(state, candidates, view, rng)
        return np.array([rng.choice(candidates, p=urn / urn.sum()) for urn in urns])

    def weights(self, state: State, candidates: Clients, cohort: Clients, view: View) -> np.ndarray:
        return np.full(len(cohort), 1 / len(cohort))


def pour(masses: np.ndarray, capacities: np.ndarray) -> np.ndarray:
    """Pour masses, in their order, into urns of these capacities, filling one urn after another:
    return how much of each mass is in each urn (urn, mass)."""
    tops, rims = masses.cumsum(), capacities.cumsum()[:, np.newaxis]
    shared = np.minimum(tops, rims) - np.maximum(tops - masses, rims - capacities[:, np.newaxis])
    return np.maximum(shared, 0)


class ClusteredBySize(BySize):
    """Draws one client from each of as many urns as the cohort has clients. Clients are poured into
    them from the largest to the smallest, so that each is in as few urns as its size allows
    (algorithm 1). Summed over urns, chances are those of `by-size`."""

    name: ClassVar[str] = "clustered-sizes"

    def urns(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        sizes = sizes_of(candidates, view)
        order, urns = np.argsort(-sizes, kind="stable"), np.zeros((view.cohort, len(sizes)), int)
        urns[:, order] = pour(view.cohort * sizes[order], np.full(view.cohort, sizes.sum()))
        return urns


class ClusteredByUpdates(BySize, LastUpdates):
    """Draws one client from each of as many urns as the cohort has clients, which hold clients with
    similar updates (algorithm 2). Summed over urns, chances are those of `by-size`.

    A client that fills whole urns has these to itself; the rest of it is clustered with the others
    by the angles of their last updates (0 if unknown), in groups of at most an urn. The largest
    groups have an urn each, whose room the clients of the others fill, from the smallest group on.
    """

    name: ClassVar[str] = "clustered-updates"
    needs: ClassVar[frozenset[str]] = frozenset({"update"})

    def urns(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        sizes = sizes_of(candidates, view)
        capacity = sizes.sum()
        full, rest = np.divmod(view.cohort * sizes, capacity)
        full_urns = capacity * np.repeat(np.eye(len(sizes), dtype=int), full, axis=0)
        groups = self.groups(state["updates"][candidates].astype(float), rest, capacity)
        order = np.argsort(np.bincount(groups, rest), kind="stable")
        small, large = np.split(order, [len(order) - view.cohort + len(full_urns)])
        urns = np.where(groups == large[:, np.newaxis], rest, 0)
        ranks, shuffled = np.argsort(order)[groups], rng.permutation(len(sizes))
        poured = shuffled[np.argsort(ranks[shuffled], kind="stable")]
        poured = poured[ranks[poured] < len(small)]
        urns[:, poured] += pour(rest[poured], capacity - urns.sum(axis=1))
        return np.concatenate([full_urns, urns])

    def groups(self, updates: np.ndarray, masses: np.ndarray, capacity: int) -> np.ndarray:
        """The group of each client, from 0: the largest subtrees of Ward's tree of the rows of
        angles whose masses add up to no more than the capacity."""
        if len(updates) == 1:
            return np.zeros(1, dtype=int)
        is_known = updates.any(axis=1)
        distances = angles(updates) * np.outer(is_known, is_known)
        tree = scipy.cluster.hierarchy.ward(scipy.spatial.distance.pdist(distances))
        heights = masses.tolist()
        for left, right in tree[:, :2].astype(int):
            heights.append(heights[left] + heights[right])
        tree[:, 2] = heights[len(masses) :]
        labels: np.ndarray = scipy.cluster.hierarchy.fcluster(tree, capacity, "distance") - 1
        return labels


@dataclass(frozen=True, kw_only=True)
class OptimalSampling(Selector, RandomPool, Probing, UpdateWeighing):
    """Has a random pool train, and draws those that send their updates by the norms of these: the
    unbiased sampling of least variance.

    A client's chance is proportional to the norm of its update times its share of the pool's
    samples, but at most 1, and its weight is this share divided by its chance. The paper draws
    independently, here a systematic sample of a fixed size. Of several epochs the first counts.
    """

    name: ClassVar[str] = "optimal-sampling"
    pool: float = parameter(32 / 3, minimum=1, help="clients that train, in multiples of a cohort")
    batches = 1_000_000  # of the probe: all of J, or of its first epoch

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        order = rng.permutation(len(candidates))
        probabilities = self.inclusion_probabilities(candidates, view)[order]
        marks = probabilities.cumsum().round(9) + rng.random()
        return candidates[order[np.diff(np.floor(marks), prepend=0) > 0]]

    def weights(self, state: State, candidates: Clients, cohort: Clients, view: View) -> np.ndarray:
        sizes = sizes_of(candidates, view)
        probabilities = self.inclusion_probabilities(candidates, view)
        rows = [int(np.flatnonzero(candidates == client)[0]) for client in cohort]
        weights: np.ndarray = sizes[rows] / sizes.sum() / probabilities[rows]
        return weights

    def inclusion_probabilities(self, candidates: Clients, view: View) -> np.ndarray:
        """Each candidate's inclusion probability, in proportion to its size times its update norm
        but at most 1; to its size alone if all norms are 0. They add up to the number drawn. Once
        updates are not finite only they are drawn, so that the run ends and counts as diverged."""
        sizes = sizes_of(candidates, view)
        norms = sizes * view.reports["probe_norm"][candidates]
        norms = norms if np.isfinite(norms).all() else sizes * ~np.isfinite(norms)
        norms = norms if norms.any() else sizes
        drawn, is_sure = min(view.cohort, np.count_nonzero(norms)), np.zeros(len(norms), bool)
        while True:
            total = max(norms[~is_sure].sum(), np.finfo(float).tiny)
            probabilities = np.where(is_sure, 1, (drawn - is_sure.sum()) * norms / total)
            if (probabilities <= 1).all():
                return probabilities
            is_sure |= probabilities > 1
