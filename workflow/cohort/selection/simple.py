"""Simple selectors (random, round-robin, skewed, by loss, UCB), and draws that others share."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from cohort.core.components import SHARE, parameter
from cohort.data.sampling import floor_share
from cohort.selection.selector import Clients, Reports, Rng, Selector, State, View


def leave_out_empty(candidates: Clients, view: View) -> np.ndarray:
    """The candidates with samples, followed by others only if these are fewer than a cohort."""
    is_empty = view.sizes[candidates] == 0
    count = max(view.cohort, np.count_nonzero(~is_empty))
    return candidates[np.argsort(is_empty, kind="stable")[:count]]


def draw_without_replacement(log_weights: np.ndarray, count: int, rng: Rng) -> np.ndarray:
    """Draw `count` positions one after another, each with a probability proportional to its weight
    among the positions that are left. The largest weights perturbed by Gumbel noise are such a draw
    (Gumbel top-k), also of weights so small that only their logarithms are numbers."""
    return np.argsort(-(log_weights + rng.gumbel(size=len(log_weights))))[:count]


def top_clients(values: np.ndarray, clients: np.ndarray, count: int, rng: Rng) -> np.ndarray:
    """The `count` of `clients` with the highest `values`, ties in random order and NaN last."""
    order = rng.permutation(len(clients))
    ranked = np.nan_to_num(values, nan=-np.inf)[order]
    return clients[order[np.argsort(-ranked, kind="stable")[:count]]]


class Random(Selector):
    """Draws the cohort uniformly, without replacement."""

    name: ClassVar[str] = "random"

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        return rng.choice(candidates, view.cohort, replace=False)


class RoundRobin(Selector):
    """Chooses the candidates whose last turn is longest ago, in an order drawn before the first
    round. Whoever is chosen has had its turn, whether it answers or not."""

    name: ClassVar[str] = "round-robin"

    def begin(self, view: View, rng: Rng) -> State:
        return {"order": rng.permutation(view.clients)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        order = state["order"]
        return order[np.isin(order, candidates)][: view.cohort]

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        waiting = state["order"][~np.isin(state["order"], cohort)]
        return {"order": np.concatenate([waiting, cohort])}


@dataclass(frozen=True, kw_only=True)
class Skewed(Selector):
    """Draws clients without replacement, with probabilities from a Dirichlet distribution.

    AML's code draws new probabilities in every round. Averaged over rounds, every client is then
    chosen equally often, which is why its curves do not depend on gamma. The paper describes
    probabilities that are drawn once.
    """

    name: ClassVar[str] = "skewed"
    gamma: float = parameter(1.0, exclusiveMinimum=0, help="concentration: smaller is more skewed")
    redraw: bool = parameter(True, help="draw anew in every round (AML's code) or once (its paper)")

    def begin(self, view: View, rng: Rng) -> State:
        return {} if self.redraw else {"log_weight": self.log_weights(view.clients, rng)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        weights = self.log_weights(view.clients, rng) if self.redraw else state["log_weight"]
        return candidates[draw_without_replacement(weights[candidates], view.cohort, rng)]

    def log_weights(self, clients: int, rng: Rng) -> np.ndarray:
        """Logarithms of Dirichlet probabilities, up to a constant. For a small gamma the
        probabilities themselves underflow, so a Gamma(gamma) draw is computed as Gamma(gamma + 1)
        times U^(1 / gamma), in logarithms."""
        logs: np.ndarray = np.log(rng.gamma(self.gamma + 1, size=clients))
        return logs + np.log1p(-rng.random(clients)) / self.gamma


@dataclass(frozen=True, kw_only=True)
class FixedProbability(Selector):
    """Each overlapping client (one that also holds samples of others) joins the cohort with a fixed
    probability, independently; regular clients are drawn uniformly for the other places.

    If more overlapping clients want to join than the cohort has places, as many of them are drawn.
    If regular clients are too few, the cohort is smaller, but has at least one client.
    """

    name: ClassVar[str] = "fixed-probability"
    needs: ClassVar[frozenset[str]] = frozenset({"overlap"})
    probability: float = parameter(0.5, **SHARE, help="chance that an overlapping client joins")

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        overlaps = view.reports["overlap"][candidates] == 1
        special, regular = candidates[overlaps], candidates[~overlaps]
        joining = special[rng.random(len(special)) < self.probability]
        if not len(joining) and not len(regular):
            joining = rng.choice(special, 1)
        if len(joining) > view.cohort:
            joining = rng.choice(joining, view.cohort, replace=False)
        regular_count = min(view.cohort - len(joining), len(regular))
        return np.concatenate([joining, rng.choice(regular, regular_count, replace=False)])


@dataclass(frozen=True, kw_only=True)
class HighestLoss(Selector):
    """Chooses the highest losses that local models had on the reserved samples when last evaluated.
    Others come first (`unseen`), clients without samples last; ties are broken at random."""

    name: ClassVar[str] = "loss"
    needs: ClassVar[frozenset[str]] = frozenset({"reserved_loss"})
    unseen: Literal["first", "never"] = parameter(
        "first",
        help="clients never evaluated: before all others (first), or only where needed (never)",
    )

    def begin(self, view: View, rng: Rng) -> State:
        return {"loss": np.full(view.clients, np.inf if self.unseen == "first" else -np.inf)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        candidates = leave_out_empty(candidates, view)
        return top_clients(state["loss"][candidates], candidates, view.cohort, rng)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        (need,) = self.needs
        measured, loss = reports[need], state["loss"].copy()
        loss[cohort[~np.isnan(measured)]] = measured[~np.isnan(measured)]
        return {"loss": loss}


class HighestTrainingLoss(HighestLoss):
    """Chooses the candidates that reported the highest mean loss of their local steps when they
    last trained: first those that never did, last those without samples, and ties at random."""

    name: ClassVar[str] = "training-loss"
    needs: ClassVar[frozenset[str]] = frozenset({"training_loss"})


@dataclass(frozen=True, kw_only=True)
class Afl(HighestLoss):
    """Draws clients with probabilities proportional to exp(alpha2 * value), where the value of a
    client is the square root of its number of samples times the mean loss on them of the model that
    it received last (active federated learning, algorithm 1).

    The share `alpha1` of the candidates with the lowest values is left out of this draw; the share
    `alpha3` of the cohort is then drawn uniformly from everybody else. Clients without a value have
    the highest, unless `unseen` is `never`; those without samples only fill a cohort. Ties are
    broken at random.
    """

    name: ClassVar[str] = "afl"
    science: ClassVar[int] = 2  # ties were broken by client number
    needs: ClassVar[frozenset[str]] = frozenset({"received_loss"})
    alpha1: float = parameter(0.75, **SHARE, help="share of clients left out for low values")
    alpha2: float = parameter(0.01, minimum=0, help="how much values count")
    alpha3: float = parameter(0.1, **SHARE, help="share of the cohort that is drawn uniformly")

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        candidates = rng.permutation(leave_out_empty(candidates, view))
        values = np.sqrt(np.maximum(view.sizes[candidates], 1)) * state["loss"][candidates]
        values = np.clip(values, 0, values[np.isfinite(values)].max(initial=0))
        best = np.argsort(values, kind="stable")[floor_share(len(values), self.alpha1) :]
        count = min(floor_share(view.cohort, 1 - self.alpha3), len(best))
        positions = best[draw_without_replacement(self.alpha2 * values[best], count, rng)]
        others = rng.choice(np.delete(candidates, positions), view.cohort - count, replace=False)
        return np.concatenate([candidates[positions], others])


TINY = 1e-10  # added to counts, so that nothing is divided by zero


@dataclass(frozen=True, kw_only=True)
class Ucb(Selector):
    """Chooses the clients with the highest upper confidence bounds; in the first rounds, and later
    with a small probability, a uniform cohort.

    A client's bound is its mean reward plus exploration * sqrt(ln(all choices) / its own choices).
    The reward of a round is the local model's accuracy on the client's own samples. A client that
    does not answer counts as chosen but gets no reward. Ties are broken at random.
    """

    name: ClassVar[str] = "ucb"
    needs: ClassVar[frozenset[str]] = frozenset({"local_accuracy"})
    exploration: float = parameter(1.0, exclusiveMinimum=0, help="c: weight of the bonus")
    epsilon: float = parameter(0.1, **SHARE, help="probability of a uniform cohort later")
    initial: int = parameter(3, minimum=0, help="first rounds, in which the cohort is uniform")

    def begin(self, view: View, rng: Rng) -> State:
        return {
            "round": np.zeros(1, dtype=np.int64),
            "count": np.zeros(view.clients, dtype=np.int64),
            "rewards": np.zeros(view.clients, dtype=np.int64),
            "reward": np.zeros(view.clients),
        }

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        if state["round"][0] < self.initial or rng.random() < self.epsilon:
            return rng.choice(candidates, view.cohort, replace=False)
        return top_clients(self.bounds(state)[candidates], candidates, view.cohort, rng)

    def bounds(self, state: State) -> np.ndarray:
        """The upper confidence bound of each client."""
        mean = state["reward"] / np.maximum(state["rewards"], 1)
        spread = max(np.log(state["count"].sum() + TINY), 0.0)  # negative before the first choice
        return mean + self.exploration * np.sqrt(spread / (state["count"] + TINY))

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        after = {name: array.copy() for name, array in state.items()}
        rewards = reports["local_accuracy"]
        answered = ~np.isnan(rewards)
        after["round"] += 1
        after["count"][cohort] += 1
        after["rewards"][cohort[answered]] += 1
        after["reward"][cohort[answered]] += rewards[answered]
        return after
