"""Selectors that know how long clients take: FedCS and TiFL."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.pools import RandomPool
from cohort.selection.selector import Reports, Rng, Selector, Skipping, State, View


@dataclass(frozen=True, kw_only=True)
class FedCs(Selector, RandomPool):
    """Chooses, of a random pool and one after another, the client with which the round takes least
    time, while it takes less than `deadline` (algorithm 3); at least one.

    A round is estimated as in the paper: the model is sent to all at once, as fast as the slowest
    receives it, then all train, and send their updates one after another. Ties are broken at
    random.
    """

    name: ClassVar[str] = "fedcs"
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration", "transfer_time"})
    pool: float = parameter(2.0, minimum=1, help="clients asked, in multiples of the cohort")
    deadline: float = parameter(180.0, exclusiveMinimum=0, help="T_round, in simulated seconds")

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        transfer = view.reports["transfer_time"]
        training = view.reports["expected_duration"] - 2 * transfer
        chosen: list[int] = []
        received = sent = 0.0  # T^d and Theta: when all chosen have the model, and sent their own
        rest = candidates
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


@dataclass(frozen=True, kw_only=True)
class Tifl(Selector, Skipping):
    """Draws each cohort from one of several tiers of equally fast clients (algorithm 2).

    Clients are sorted by how long a round is expected to take them, and split into tiers of equal
    size; ties are broken at random. A tier has credits for its share of the rounds, and is drawn
    only while some are left and any of its clients is there; all are drawn alike at first. In every
    `interval`-th round all clients that are there evaluate the global model on their own samples.
    If the mean accuracy of the tier drawn last is then no higher than an interval before, the tiers
    with credits are drawn in proportion to the rank of their accuracy, the worst most often. If too
    few of a tier are there, the cohort is smaller.
    """

    name: ClassVar[str] = "tifl"
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration", "candidate_accuracy"})
    tiers: int = parameter(5, minimum=1, help="number of tiers")
    interval: int = parameter(10, minimum=1, help="I: rounds between evaluations of the tiers")
    credits: float = parameter(
        1.0, minimum=1, help="cohorts that a tier can supply, in multiples of its share of rounds"
    )

    def begin(self, view: View, rng: Rng) -> State:
        durations, order = view.reports["expected_duration"], rng.permutation(view.clients)
        order = order[np.argsort(durations[order], kind="stable")]
        tier = np.zeros(view.clients, dtype=np.int64)
        for number, members in enumerate(np.array_split(order, self.tiers)):
            tier[members] = number
        credits = int(np.ceil(self.credits * view.rounds / self.tiers))
        return {
            "round": np.zeros(1, dtype=np.int64),
            "tier": tier,
            "credits": np.full(self.tiers, credits),
            "odds": np.ones(self.tiers),
            "accuracy": np.zeros(self.tiers),
            "last": np.zeros(1, dtype=np.int64),
        }

    def asks(self, state: State, view: View) -> bool:
        return bool(state["round"][0] % self.interval == 0)

    def select(self, state: State, candidates: np.ndarray, view: View, rng: Rng) -> np.ndarray:
        state = self._evaluated(state, view)
        tier = state["tier"][candidates]
        is_there = np.bincount(tier, minlength=self.tiers) > 0
        odds = np.where(is_there & (state["credits"] > 0), state["odds"], 0)
        odds = odds if odds.any() else is_there.astype(float)
        members = candidates[tier == rng.choice(self.tiers, p=odds / odds.sum())]
        return rng.choice(members, min(view.cohort, len(members)), replace=False)

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        after = {name: array.copy() for name, array in self._evaluated(state, view).items()}
        after["last"] = state["tier"][cohort[:1]]
        after["credits"][after["last"]] -= 1
        after["round"] += 1
        return after

    def _evaluated(self, state: State, view: View) -> State:
        """The state with the accuracy of each tier of which any client evaluated the model in this
        round, and with new odds if it is time for them."""
        if not self.asks(state, view):
            return state
        values, tier, last = view.reports["candidate_accuracy"], state["tier"], state["last"]
        is_known = ~np.isnan(values)
        counts = np.bincount(tier[is_known], minlength=self.tiers)
        sums = np.bincount(tier[is_known], values[is_known], minlength=self.tiers)
        accuracy = np.where(counts, sums / np.maximum(counts, 1), state["accuracy"])
        odds = state["odds"]
        if state["round"] > 0 and accuracy[last] <= state["accuracy"][last]:
            ranked = np.argsort(accuracy, kind="stable")
            ranked, odds = ranked[state["credits"][ranked] > 0], np.zeros(self.tiers)
            odds[ranked] = np.arange(len(ranked), 0, -1)
        return state | {"accuracy": accuracy, "odds": odds}
