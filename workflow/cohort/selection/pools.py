"""Selectors that first draw a pool of clients, and choose the cohort by what these report."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import SHARE, parameter
from cohort.selection import selector as abilities
from cohort.selection import simple
from cohort.selection.selector import Clients, Reports, Rng, Selector, State, View
from cohort.selection.simple import HighestTrainingLoss, draw_without_replacement, top_clients


class RandomPool(abilities.Screening):
    """Draws the pool uniformly: `pool` times as many clients as the cohort has, or all."""

    pool: float

    def pool_size(self, clients: int, cohort: int) -> int:
        return min(round(self.pool * cohort), clients)

    def draw_pool(self, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        return rng.choice(candidates, self.pool_size(len(candidates), view.cohort), replace=False)


@dataclass(frozen=True, kw_only=True)
class PowD(Selector, RandomPool):
    """Draws d clients with probabilities proportional to their numbers of samples, has each of them
    evaluate the global model on its own samples, and chooses those with the highest loss, ties at
    random (section 4). With a pool of the cohort's size the choice is random."""

    name = "pow-d"
    needs = frozenset({"candidate_loss"})
    pool: float = parameter(2.0, minimum=1, help="d: clients drawn, as a multiple of the cohort")

    def draw_pool(self, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        size = self.pool_size(len(candidates), view.cohort)
        return candidates[draw_by_size(candidates, view, size, rng)]

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        (need,) = self.needs
        return top_clients(view.reports[need][candidates], candidates, view.cohort, rng)


def draw_by_size(candidates: Clients, view: View, count: int, rng: Rng) -> np.ndarray:
    """Draw the positions of `count` candidates, in proportion to their numbers of samples. Those
    without samples are drawn last, and only if the cohort would be too small without them."""
    sizes = view.sizes[candidates]
    with np.errstate(divide="ignore"):
        positions = draw_without_replacement(np.log(sizes), count, rng)
    return positions[: max(view.cohort, np.count_nonzero(sizes))]


class CpowD(PowD):
    """`pow-d` with losses on one batch of each client's own samples (cpow-d in section 4)."""

    name = "cpow-d"
    needs = frozenset({"candidate_batch_loss"})


@dataclass(frozen=True, kw_only=True)
class RpowD(HighestTrainingLoss):
    """Draws d clients with probabilities proportional to their numbers of samples, and chooses
    those that reported the highest mean loss of their local steps when they last trained (rpow-d
    in section 4). A client that never trained comes first, unless `unseen` is `never`."""

    name: ClassVar[str] = "rpow-d"
    pool: float = parameter(2.0, minimum=1, help="d: clients drawn, as a multiple of the cohort")

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        size = min(round(self.pool * view.cohort), len(candidates))
        pool = candidates[draw_by_size(candidates, view, size, rng)]
        return top_clients(state["loss"][pool], pool, view.cohort, rng)


@dataclass(frozen=True, kw_only=True)
class FedCs(Selector, RandomPool):
    """Chooses, of a random pool and one after another, the client with which the round takes least
    time, while it takes less than `deadline` (algorithm 3); at least one. A round is estimated as
    in the paper: the model is sent to all at once, as fast as the slowest receives it, then all
    train, and send their updates one after another. Ties are broken at random."""

    name: ClassVar[str] = "fedcs"
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration", "transfer_time"})
    pool: float = parameter(2.0, minimum=1, help="clients asked, in multiples of the cohort")
    deadline: float = parameter(180.0, exclusiveMinimum=0, help="T_round, in simulated seconds")

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        transfer = view.reports["transfer_time"]
        training = view.reports["expected_duration"] - 2 * transfer
        chosen: list[int] = []
        received = sent = 0.0  # T^d and Theta: when all chosen have the model, and sent their own
        rest = simple.leave_out_empty(candidates, view)
        while len(chosen) < view.cohort and len(rest):
            receiving = np.maximum(received, transfer[rest])
            sending = np.maximum(sent, training[rest]) + transfer[rest]
            best = (receiving + sending).argmin()
            received, sent = receiving[best], sending[best]
            if chosen and received + sent >= self.deadline:
                break
            chosen.append(rest[best])
            rest = np.delete(rest, best)
        return np.array(chosen)


NEVER = -999_999  # the last round of a client that was never chosen


@dataclass(frozen=True, kw_only=True)
class Probe(Selector, RandomPool, abilities.Probing):
    """Has a random pool of clients train on a few batches, then chooses the cohort by score.

    A client's score weighs the norm of its probe update against fairness: how rarely, and how long
    ago, it was chosen. The cohort consists of overdue clients, then those with the highest scores,
    then some that explore, drawn in proportion to exp(score / temperature). Its clients continue
    training from the weights of their probes.
    """

    name: ClassVar[str] = "probe"
    pool: float = parameter(2.0, minimum=1, help="probed clients, as a multiple of the cohort")
    batches: int = parameter(2, minimum=1, help="local batches of a probe")
    beta: float = parameter(0.3, minimum=0, maximum=1, help="weight of fairness against movement")
    epsilon: float = parameter(0.05, minimum=0, maximum=1, help="share of the cohort that explores")
    temperature: float = parameter(0.7, exclusiveMinimum=0, help="higher explores more uniformly")
    patience: float = parameter(0.25, exclusiveMinimum=0, help="longest wait, share of rounds")
    rarity: float = parameter(0.6, **SHARE, help="weight of rarity, against waiting, in fairness")

    def begin(self, view: View, rng: Rng) -> State:
        count, last = np.zeros(view.clients, dtype=int), np.full(view.clients, NEVER)
        return {"count": count, "last": last, "round": np.zeros(1, dtype=int)}

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        pool, norms = candidates, view.reports["probe_norm"][candidates]
        norms = norms if np.isfinite(norms).all() else 1.0 * ~np.isfinite(norms)
        gap = state["round"] + 1 - state["last"][pool]
        score = self.scores(norms, state["count"][pool], gap, rng)
        explored = min(round(self.epsilon * view.cohort), view.cohort - 1)
        exploited = view.cohort - explored
        overdue = np.flatnonzero(gap >= max(1, int(self.patience * view.rounds)))
        forced = overdue[np.argsort(-gap[overdue], kind="stable")][:exploited]
        best = np.setdiff1d(np.argsort(-score, kind="stable"), forced, assume_unique=True)
        chosen = np.concatenate([forced, best])[:exploited]
        if explored:
            rest = np.setdiff1d(np.arange(len(pool)), chosen)
            positions = draw_without_replacement(score[rest] / self.temperature, explored, rng)
            chosen = np.concatenate([chosen, rest[positions]])
        return pool[chosen]

    def scores(
        self, norms: np.ndarray, counts: np.ndarray, gaps: np.ndarray, rng: Rng
    ) -> np.ndarray:
        """Each client's score, from its probe's norm, how often and how long ago it was chosen."""
        rare = scale_to_unit(1 / (1 + counts)) if counts.any() else np.ones(len(counts))
        fairness = scale_to_unit(self.rarity * rare + (1 - self.rarity) * scale_to_unit(gaps))
        score = (1 - self.beta) * scale_to_unit(norms) + self.beta * fairness
        return score if score.any() else 1e-6 * rng.random(len(score))

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        count, last, this_round = state["count"].copy(), state["last"].copy(), state["round"] + 1
        count[cohort] += 1
        last[cohort] = this_round
        return {"count": count, "last": last, "round": this_round}


def scale_to_unit(values: np.ndarray) -> np.ndarray:
    """Scale values to the range from 0 to 1; all zero if they are equal."""
    spread = np.ptp(values)
    return (values - values.min()) / spread if spread else np.zeros(len(values))
