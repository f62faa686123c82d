"""Selectors that balance the labels of the cohort."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cohort.core.components import SHARE, parameter
from cohort.selection import selector as abilities
from cohort.selection.selector import Clients, Reports, Rng, Selector, State, View
from cohort.selection.simple import Random, draw_without_replacement

TIE = 1e-12  # entropies this close are equal, or rounding would break ties; the lowest index wins
FLOAT32_ERROR = 1e-3  # bits: more than the rounding error of an entropy in float32
BLOCK = 512  # rows whose entropies are computed at once
TINY = 1e-30  # replaces a count of zero, whose logarithm is infinite
EMPTY = 1e-20  # a row whose total is below this has no counts


@dataclass(frozen=True, kw_only=True)
class Entropy(Selector):
    """Draws the first client at random, then greedily adds the client that maximizes the entropy of
    the pooled label counts.

    Recently chosen clients are excluded while they are in a first-in-first-out buffer. Algorithm 1
    of the FedEntOpt paper evicts after each pick; evicting after the round fits Table VI better.
    With `epsilon` above 0 every client adds Laplace noise of scale 1 / epsilon to the counts that
    it uploads once: but for rounding, one sample more or less changes the probability of any report
    by at most a factor of exp(epsilon). Who knows the run's seed can remove the noise. A share of
    `liars` claims to hold equally many of every class, a limitation that the paper names.
    """

    name = "entropy"
    needs = frozenset({"label_counts"})
    buffer: float = parameter(0.5, minimum=0, exclusiveMaximum=1, help="as a share of all clients")
    evict: Literal["round", "pick"] = parameter("round", help="after a round or pick (Algorithm 1)")
    epsilon: float = parameter(0.0, minimum=0, help="differential privacy of counts, 0: no noise")
    liars: float = parameter(0.0, **SHARE, help="share of clients that report uniform labels")

    def check(self, clients: int, cohort: int) -> None:
        if round(self.buffer * clients) + cohort > clients:
            buffer = f"a buffer of {self.buffer:g} of {clients} clients"
            raise ValueError(f"{buffer} leaves fewer than the {cohort} of a cohort")

    def reported_counts(self, label_counts: np.ndarray, rng: Rng) -> np.ndarray:
        reported = label_counts
        if self.liars:
            clients, reported = len(label_counts), label_counts.astype(np.float64)
            lying = rng.choice(clients, round(self.liars * clients), replace=False)
            reported[lying] = reported[lying].mean(axis=1, keepdims=True)
        if self.epsilon:
            reported = reported + rng.laplace(scale=1 / self.epsilon, size=reported.shape)
        return reported

    def begin(self, view: View, rng: Rng) -> State:
        return {"buffer": np.empty(0, dtype=np.int64)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        assert view.label_counts is not None
        counts = view.label_counts
        pool = without_resting(candidates, state["buffer"], view.cohort)
        rows = counts[pool].astype(np.float32)
        cohort = [int(rng.choice(pool))]
        pooled = counts[cohort[0]].astype(np.float64)
        while len(cohort) < view.cohort:
            if self.evict == "pick":
                buffer = self._next_buffer(state["buffer"], np.array(cohort), view)
                pool = without_resting(candidates, buffer, view.cohort)
                rows = counts[pool].astype(np.float32)
            rough = entropy_bits(rows, pooled.astype(np.float32))
            rough[np.isin(pool, cohort)] = -1
            close = pool[rough >= rough.max() - FLOAT32_ERROR]
            entropies = entropy_bits(counts[close], pooled)
            best = int(close[np.flatnonzero(entropies >= entropies.max() - TIE)[0]])
            cohort.append(best)
            pooled = pooled + counts[best]
        return np.array(cohort)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        return state | {"buffer": self._next_buffer(state["buffer"], cohort, view)}

    def _next_buffer(self, buffer: np.ndarray, chosen: np.ndarray, view: View) -> np.ndarray:
        """The buffer after the chosen clients entered and the oldest were evicted."""
        queue = np.concatenate([buffer[~np.isin(buffer, chosen)], chosen])
        return queue[len(queue) - min(round(self.buffer * view.clients), len(queue)) :]


def without_resting(candidates: Clients, buffer: np.ndarray, count: int) -> np.ndarray:
    """The candidates that are not in the buffer, in ascending order. If fewer than `count` are
    left, those that entered the buffer first are let back in."""
    resting = buffer[np.isin(buffer, candidates)]
    back = max(count + len(resting) - len(candidates), 0)
    return np.setdiff1d(candidates, resting[back:])


def entropy_bits(counts: np.ndarray, added: np.ndarray | float = 0.0) -> np.ndarray:
    """Shannon entropy in bits of each row of `counts + added`, 0 for an empty row. Negative counts,
    which noise can cause, count as 0. Blocks of rows fit into a processor's cache."""
    rows = counts.reshape(-1, counts.shape[-1])  # (row, class)
    entropies = np.empty(len(rows))
    for begin in range(0, len(rows), BLOCK):
        block = np.maximum(rows[begin : begin + BLOCK] + added, TINY)
        total = block.sum(axis=1)
        nats = np.log(total) - np.einsum("rc,rc->r", block, np.log(block)) / total
        bits = np.maximum(nats, 0) / np.log(2)
        entropies[begin : begin + BLOCK] = np.where(total > EMPTY, bits, 0)
    return entropies.reshape(counts.shape[:-1])


class Reselect(Random, abilities.Filtering):
    """Draws a uniform cohort and filters its updates by soft labels: each client sends the mean
    softmax output of its local model on its own samples.

    As long as it increases the entropy of the mean soft label, weighted by data size, the server
    excludes the client without which that entropy is highest. This is the rule of the authors'
    code after a uniform draw, as FedEntOpt describes it; their code prefers clients kept earlier.
    """

    name = "reselect"
    needs = frozenset({"soft_labels"})

    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        soft_labels = np.nan_to_num(reports["soft_labels"])  # NaN for a client without samples
        weighted = soft_labels * sizes[:, None]  # (client, class)
        rows = np.arange(len(sizes))
        highest = entropy_bits(weighted.sum(axis=0))
        while len(rows) > 1:
            without = entropy_bits(weighted[rows].sum(axis=0) - weighted[rows])
            if not without.max() > highest + TIE:
                break
            highest = without.max()
            rows = np.delete(rows, np.flatnonzero(without >= highest - TIE)[0])
        return np.isin(np.arange(len(sizes)), rows)


@dataclass(frozen=True, kw_only=True)
class KL(Selector, abilities.Allocating):
    """Adds clients from the largest to the smallest, until the cohort is full or the pooled labels'
    Kullback-Leibler divergence from uniform is below theta.

    The first client uses all its samples. A further one is added if it holds samples of the class
    that is rarest so far; of each class it uses at most as many as bring the pool up to the count
    of the first client's most frequent class.

    The paper tests the divergence after each pass over all clients, which can exceed the cohort;
    here it is tested after each client. The set is the same in every round.
    """

    name = "kl"
    needs = frozenset({"label_counts"})
    theta: float = parameter(0.01, minimum=0, help="divergence in nats that counts as uniform")
    redraw: bool = parameter(True, help="draw a client's samples in every round, or only once")

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        return np.array(list(self._add_clients(candidates, view)))

    def quotas(self, cohort: Clients, view: View) -> np.ndarray:
        """How many samples of each class each client trains on (client, class)."""
        return np.array(list(self._add_clients(np.sort(cohort), view).values()))

    def _add_clients(self, candidates: Clients, view: View) -> dict[int, np.ndarray]:
        """Add clients until the labels are even; return the class counts of each in this order."""
        assert view.label_counts is not None
        counts = view.label_counts
        waiting = candidates[np.argsort(-view.sizes[candidates], kind="stable")].tolist()
        first = waiting.pop(0)
        taken = {first: counts[first]}
        pooled = counts[first].copy()
        max_count = pooled.max()
        progress = True
        while progress:
            progress = False
            for client in list(waiting):
                divergence = np.log(len(pooled)) - entropy_bits(pooled) * np.log(2)
                if len(taken) == view.cohort or divergence < self.theta:
                    return taken
                if counts[client][pooled.argmin()] > 0:
                    taken[client] = np.minimum(max_count - pooled, counts[client])
                    pooled += taken[client]
                    waiting.remove(client)
                    progress = True
        return taken


PERFECT = 1e-12  # the imbalance of perfectly balanced clients, so that their weights are finite


@dataclass(frozen=True, kw_only=True)
class FedCbs(Selector):
    """Draws one client after another, each the more likely the less imbalanced the classes of the
    cohort are with it.

    The imbalance is the squared distance of the class shares from equal ones (QCID). The weight of
    the m-th client is that of the cohort with it to the power of -m; the first client's has a bonus
    of exploration * sqrt(3 ln(round) / (2 * times chosen)), of which counts begin at one.
    """

    name = "fed-cbs"
    needs = frozenset({"label_counts"})
    exploration: float = parameter(10.0, minimum=0, help="lambda: bonus of rarely chosen clients")

    def begin(self, view: View, rng: Rng) -> State:
        return {"round": np.ones(1, dtype=int), "count": np.ones(view.clients, dtype=int)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        assert view.label_counts is not None
        counts = view.label_counts[candidates].astype(np.float64)
        pooled, rest = np.zeros(counts.shape[1]), np.arange(len(candidates))
        cohort: list[int] = []
        while len(cohort) < view.cohort:
            weights = -(len(cohort) + 1) * np.log(imbalance(pooled + counts[rest]) + PERFECT)
            if not cohort:
                spread = 3 * np.log(state["round"]) / (2 * state["count"][candidates])
                weights = np.log(np.exp(weights) + self.exploration * np.sqrt(spread))
            (position,) = draw_without_replacement(weights, 1, rng)
            cohort.append(candidates[rest[position]])
            pooled, rest = pooled + counts[rest[position]], np.delete(rest, position)
        return np.array(cohort)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        count = state["count"].copy()
        count[cohort] += 1
        return {"round": state["round"] + 1, "count": count}


def imbalance(counts: np.ndarray) -> np.ndarray:
    """The quadratic class imbalance degree of label counts (row, class): the squared distance of
    class shares from equal ones; for rows without samples the largest, 1 - 1/classes."""
    totals, classes = counts.sum(axis=1, keepdims=True), counts.shape[1]
    shares = counts / np.maximum(totals, 1)
    return np.where(totals[:, 0] > 0, ((shares - 1 / classes) ** 2).sum(axis=1), 1 - 1 / classes)
