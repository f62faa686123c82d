"""Selectors that compare clients: their updates, their labels, or how their losses change."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cohort.core.components import SHARE, parameter
from cohort.core.lazy import lazy
from cohort.selection import pools, simple
from cohort.selection.selector import Clients, ConditionalNeeds, Reports, Rng, Selector, State, View

scipy = lazy("scipy")


class LastUpdates(Selector):
    """Base of selectors that know each client by its last report of one `need`. Clients that never
    reported are chosen first, at random, those without samples last, the rest by `choose_seen`."""

    def begin(self, view: View, rng: Rng) -> State:
        updates = np.zeros((view.clients, 0), dtype=np.float32)
        return {"seen": np.zeros(view.clients, dtype=bool), "updates": updates}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        candidates = simple.leave_out_empty(candidates, view)
        is_seen = state["seen"][candidates]
        unseen = rng.permutation(candidates[~is_seen])[: view.cohort]
        seen = candidates[is_seen]
        count = min(view.cohort - len(unseen), len(seen))
        return np.concatenate([unseen, self.choose_seen(state, seen, count, view, rng)])

    def choose_seen(self, state: State, seen: Clients, count: int, view: View, rng: Rng) -> Clients:
        """Choose `count` of the candidates that answered before (`seen`)."""
        raise NotImplementedError

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        (need,) = self.needs
        updates = reports[need]  # NaN without an answer; those that diverge are left out, too
        answered = (np.abs(updates) <= np.finfo(np.float32).max).all(axis=1)
        after = {name: array.copy() for name, array in state.items()}
        if not after["updates"].size:
            after["updates"] = np.zeros((view.clients, updates.shape[1]), dtype=np.float32)
        after["seen"][cohort[answered]] = True
        after["updates"][cohort[answered]] = updates[answered]
        return after


ROUNDING = 1e-12  # nats: a divergence below is rounding between equal distributions


@dataclass(frozen=True, kw_only=True)
class Diversity(Selector):
    """Draws the cohort with probabilities that follow a fixed score of each client: how diverse its
    own labels are, and how far its label distribution is from those of the other clients.

    The paper means by the latter the mean Jensen-Shannon divergence to all other clients. Its code
    computes the distance, the square root of the divergence, averages it over all clients, the
    client itself included, and divides it by the largest mean.
    """

    name = "diversity"
    needs = frozenset({"label_counts"})
    mix: float = parameter(0.5, **SHARE, help="lambda: weight of classes against label entropy")
    alpha: float = parameter(0.5, **SHARE, help="weight of own diversity against the distance")
    measure: Literal["distance", "divergence"] = parameter("distance", help="as run or as written")

    def version(self) -> int:
        return 2 if self.measure == "divergence" else 1

    def begin(self, view: View, rng: Rng) -> State:
        assert view.label_counts is not None
        scores = self.scores(view.label_counts)
        weights = (scores - scores.min()) / (np.ptp(scores) + 1e-12) + 0.01
        return {"score": scores, "weight": weights}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        weights = state["weight"][candidates]
        return rng.choice(candidates, view.cohort, replace=False, p=weights / weights.sum())

    def scores(self, label_counts: np.ndarray) -> np.ndarray:
        """The score of each client, by which it is drawn."""
        classes = label_counts.shape[1]
        shares = label_counts / np.maximum(label_counts.sum(axis=1, keepdims=True), 1)
        coverage = (label_counts > 0).sum(axis=1) / classes
        entropy = scipy.special.entr(shares).sum(axis=1) / np.log(classes)
        diversity = self.mix * coverage + (1 - self.mix) * entropy
        return self.alpha * diversity + (1 - self.alpha) * self._distances(shares)

    def _distances(self, mixes: np.ndarray) -> np.ndarray:
        """The distance of each client's label distribution from those of the other clients."""
        entr = scipy.special.entr
        entropies = entr(mixes).sum(axis=1)
        divergences = np.stack([entr((mix + mixes) / 2).sum(axis=1) for mix in mixes])
        divergences -= (entropies[:, np.newaxis] + entropies) / 2
        divergences[divergences < ROUNDING] = 0
        if self.measure == "divergence":
            return divergences.sum(axis=1) / max(len(mixes) - 1, 1)
        distances = np.sqrt(divergences).mean(axis=1)
        return distances / max(distances.max(), np.finfo(float).tiny)


class DivFl(LastUpdates):
    """Greedily chooses the clients whose updates best represent all clients': facility location,
    which minimizes the sum over clients of the distance to the nearest chosen one.

    Only the clients of a cohort send updates, so that the others are known by their last ones.
    Clients that never answered are chosen first, at random. (The authors' code computes the
    gradients of all clients once, before the first round.)
    """

    name = "divfl"
    needs = frozenset({"update"})

    def begin(self, view: View, rng: Rng) -> State:
        return super().begin(view, rng) | {"distances": np.zeros((view.clients, view.clients))}

    def choose_seen(self, state: State, seen: Clients, count: int, view: View, rng: Rng) -> Clients:
        return seen[choose_facilities(state["distances"][np.ix_(state["seen"], seen)], count)]

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        after = super().observe(state, cohort, reports, view)
        clients = cohort[~np.isnan(reports["update"]).any(axis=1)]
        recent = after["updates"][clients].astype(np.float64)
        cdist = scipy.spatial.distance.cdist
        columns = [cdist(recent, update[np.newaxis]) for update in after["updates"]]
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


@dataclass(frozen=True, kw_only=True)
class HicsFl(LastUpdates):
    """Clusters clients by the updates of the last layer's bias, and draws from clusters of diverse
    clients more often, at first (algorithm 1).

    The entropy of the softmax of a client's bias update estimates how diverse its labels are
    (equation 7). Two clients are as far apart as the angle of their updates plus `weight` times the
    difference of their entropies (9). There are as many clusters as clients in a cohort. A cluster
    is drawn in proportion to exp(diversity * rounds left / all rounds * its mean entropy), a client
    of it to its samples (10), and nobody twice. Before that, every client is chosen once.
    """

    name = "hics-fl"
    needs = frozenset({"bias_update"})
    temperature: float = parameter(0.0025, exclusiveMinimum=0, help="T: of a bias update's softmax")
    weight: float = parameter(10.0, minimum=0, help="lambda: of the entropies in the distance")
    diversity: float = parameter(4.0, minimum=0, help="gamma_0: weight of diversity at first")

    def begin(self, view: View, rng: Rng) -> State:
        return super().begin(view, rng) | {"round": np.zeros(1, dtype=np.int64)}

    def choose_seen(self, state: State, seen: Clients, count: int, view: View, rng: Rng) -> Clients:
        if not count:
            return seen[:0]
        updates = state["updates"][seen].astype(np.float64)
        entropies = self.entropies(updates)
        clusters = self.clusters(updates, entropies, view.cohort)
        means = np.bincount(clusters, entropies) / np.bincount(clusters)
        remaining = 1 - state["round"][0] / view.rounds
        chosen: list[int] = []
        for _ in range(count):
            rest = np.setdiff1d(np.arange(len(seen)), chosen)
            open_clusters = np.unique(clusters[rest])
            odds = scipy.special.softmax(self.diversity * remaining * means[open_clusters])
            members = rest[clusters[rest] == rng.choice(open_clusters, p=odds)]
            chosen.append(members[pools.draw_by_size(seen[members], view, 1, rng)[0]])
        return seen[chosen]

    def entropies(self, updates: np.ndarray) -> np.ndarray:
        """The estimated label entropy of each client, in nats, from its bias update."""
        shares = scipy.special.softmax(updates / self.temperature, axis=1)
        return scipy.special.entr(shares).sum(axis=1)

    def clusters(self, updates: np.ndarray, entropies: np.ndarray, count: int) -> np.ndarray:
        """Each client's cluster, from 0: Ward's linkage of rows of distances, as in their code."""
        if len(updates) <= count:
            return np.arange(len(updates))
        distances = angles(updates) + self.weight * np.abs(entropies[:, np.newaxis] - entropies)
        tree = scipy.cluster.hierarchy.ward(scipy.spatial.distance.pdist(distances))
        return scipy.cluster.hierarchy.cut_tree(tree, count).ravel()

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        return super().observe(state, cohort, reports, view) | {"round": state["round"] + 1}


def angles(updates: np.ndarray) -> np.ndarray:
    """The angle between every two rows in radians, pi/2 if one of them is zero."""
    norms = np.linalg.norm(updates, axis=1)
    norms = np.maximum(np.outer(norms, norms), np.finfo(float).tiny)
    result: np.ndarray = np.arccos(np.clip(updates @ updates.T / norms, -1, 1))
    return result


NOISE = 0.01  # the standard deviation of a change of loss that no other client explains


@dataclass(frozen=True, kw_only=True)
class FedCor(Selector, ConditionalNeeds):
    """Chooses, one after another, the clients whose loss is correlated most with the losses of all,
    given those that are chosen already (Tang et al., CVPR 2022).

    In the first rounds, and in every `interval`-th one after them, the cohort is random and all
    clients evaluate the global model before and after it. The changes of their losses are samples
    of a Gaussian process: clients are points in `dimension` dimensions, the most likely ones, whose
    products are covariances. (The authors' code takes steps of Adam towards them.)
    """

    name = "fedcor"
    needs = frozenset({"candidate_loss"})
    warmup: int = parameter(15, minimum=2, help="the number of first rounds")
    interval: int = parameter(10, minimum=2, help="rounds between updates of the process")
    dimension: int = parameter(15, minimum=1, help="the dimension of the points")
    annealing: float = parameter(
        0.95, exclusiveMinimum=0, maximum=1, help="beta: factor each time a client is chosen"
    )
    memory_decay: float = parameter(
        0.95, exclusiveMinimum=0, maximum=1, help="gamma: how much a sample counts each round later"
    )

    def begin(self, view: View, rng: Rng) -> State:
        return {
            "round": np.ones(1, dtype=np.int64),
            "losses": np.full(view.clients, np.nan),
            "changes": np.zeros((0, view.clients)),
            "ages": np.zeros(0, dtype=np.int64),
            "points": np.zeros((view.clients, self.dimension)),
            "chosen": np.zeros(view.clients, dtype=np.int64),
        }

    def asks(self, state: State, view: View) -> bool:
        return self._is_random(state) or self._is_random(state, earlier=1)

    def _is_random(self, state: State, earlier: int = 0) -> bool:
        """Whether the cohort of this round, or of the round `earlier` rounds before, is random."""
        later = int(state["round"][0]) - earlier - self.warmup
        return later <= 0 or later % self.interval == 0

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        if self._is_random(state):
            return rng.choice(candidates, view.cohort, replace=False)
        state = self._with_newest_change(state, view)
        covariance = state["points"] @ state["points"].T + NOISE**2 * np.eye(view.clients)
        shares, weights = view.sizes / view.sizes.sum(), self.annealing ** state["chosen"]
        cohort: list[int] = []
        while len(cohort) < view.cohort:
            rest = np.setdiff1d(candidates, cohort)
            deviations = np.sqrt(np.diagonal(covariance)[rest])
            gains = weights[rest] * (shares @ covariance[:, rest]) / deviations
            client = rest[gains.argmax()]
            cohort.append(client)
            column = covariance[:, client]
            covariance = covariance - np.outer(column, column) / column[client]
        return np.array(cohort)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        after = self._with_newest_change(state, view)
        after["chosen"][cohort] += not self._is_random(state)
        after["ages"] += 1
        after["losses"] = view.reports.get("candidate_loss", np.full(view.clients, np.nan))
        after["round"] = state["round"] + 1
        return after

    def _with_newest_change(self, state: State, view: View) -> State:
        """The state with the newest change of losses and refitted points, if the cohort before was
        random and the losses before and after it are known."""
        after = {name: array.copy() for name, array in state.items()}
        losses, random = view.reports.get("candidate_loss"), self._is_random(state, earlier=1)
        if losses is None or not random or np.isnan(state["losses"]).all():
            return after
        change = losses - state["losses"]
        # NaN for clients without samples, or unavailable before or now
        change = np.where(np.isfinite(change), change, 0)
        after["changes"] = np.vstack([state["changes"], change])
        after["ages"] = np.append(state["ages"], 0)
        weights = self.memory_decay ** after["ages"].astype(np.float64)
        after["points"] = fit_probabilistic_pca(after["changes"], weights, self.dimension, NOISE)
        after["chosen"][:] = 0
        return after


def fit_probabilistic_pca(
    samples: np.ndarray, weights: np.ndarray, dimension: int, noise: float
) -> np.ndarray:
    """Fit probabilistic PCA (Tipping and Bishop, 1999) with this noise to weighted samples (sample,
    client): the principal axes (client, dimension), scaled by their deviations without noise."""
    shares = weights / weights.sum()
    centered = (samples - shares @ samples) * np.sqrt(shares)[:, np.newaxis]
    _, deviations, axes = np.linalg.svd(centered, full_matrices=False)
    lengths = np.sqrt(np.maximum(deviations**2 - noise**2, 0))[:dimension]
    points = np.zeros((samples.shape[1], dimension))
    points[:, : len(lengths)] = axes[: len(lengths)].T * lengths
    return points
