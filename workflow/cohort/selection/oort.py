"""Selectors that know how long clients take: Oort, by paper and by FedScale's code, and TiFL."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import SHARE, parameter
from cohort.data.sampling import floor_share
from cohort.selection.selector import Clients, ConditionalNeeds, Reports, Rng, Selector, State, View
from cohort.selection.simple import draw_without_replacement, leave_out_empty

CLIP = 0.95  # the quantile of utilities that none exceeds
LOW = 0.999  # this share of the least utility becomes 0, so that the least can be drawn


@dataclass(frozen=True, kw_only=True)
class Oort(Selector):
    """Draws explored clients by their utility, and unexplored ones by their speed (algorithm 1).

    The statistical utility of a client is its number of samples times the root mean square of their
    losses when it last trained, clipped at the 95th percentile and scaled to [0, 1], plus
    sqrt(0.1 ln(round) / round of its last turn). A client that takes longer than preferred loses
    (preferred / its duration) ** penalty. Candidates have at least `cutoff` times the lowest
    utility among as many of the highest as are drawn. The preferred duration is a percentile of all
    durations, which the pacer raises every `window` rounds, if their utility is below that of those
    before. Clients without samples only fill a cohort.
    """

    name = "oort"
    needs = frozenset({"loss_norm", "duration", "expected_duration"})
    exploration: float = parameter(0.9, minimum=0, maximum=1, help="epsilon: explored at first")
    decay: float = parameter(0.98, exclusiveMinimum=0, maximum=1, help="exploration kept per round")
    least: float = parameter(0.2, minimum=0, maximum=1, help="the least exploration")
    cutoff: float = parameter(0.95, **SHARE, help="c: share of the last utility that admits")
    penalty: float = parameter(2.0, minimum=0, help="alpha: exponent for slow clients")
    percentile: float = parameter(10.0, minimum=0, maximum=100, help="preferred duration, at first")
    pace: float = parameter(5.0, minimum=0, help="by how many points the pacer raises it")
    window: int = parameter(20, minimum=1, help="W: rounds that the pacer looks back")

    def begin(self, view: View, rng: Rng) -> State:
        return {
            "round": np.ones(1, dtype=np.int64),
            "utility": np.full(view.clients, np.nan),
            "last": np.ones(view.clients, dtype=np.int64),
            "duration": view.reports["expected_duration"].copy(),
            "percentile": np.array([self.percentile]),
            "gained": np.zeros(0),
        }

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        candidates = leave_out_empty(candidates, view)
        is_explored = ~np.isnan(state["utility"][candidates])
        explored, unexplored = candidates[is_explored], candidates[~is_explored]
        epsilon = max(self.exploration * self.decay ** (state["round"][0] - 1), self.least)
        exploiting = min(floor_share(view.cohort, 1 - epsilon), len(explored))
        exploring = min(view.cohort - exploiting, len(unexplored))
        exploiting = min(view.cohort - exploring, len(explored))
        by_utility = explored[self._exploit(state, explored, exploiting, rng)]
        speeds = -np.log(np.maximum(state["duration"][unexplored], np.finfo(float).tiny))
        by_speed = unexplored[draw_without_replacement(speeds, exploring, rng)]
        return np.concatenate([by_utility, by_speed])

    def _exploit(self, state: State, explored: np.ndarray, count: int, rng: Rng) -> np.ndarray:
        """Draw `count` positions of explored clients near the best, in proportion to utility."""
        if not count:
            return np.zeros(0, dtype=np.int64)
        utilities = self.utilities(state)[explored]
        admitted = self.admitted_positions(utilities, count)
        return admitted[draw_without_replacement(np.log(utilities[admitted]), count, rng)]

    def admitted_positions(self, utilities: np.ndarray, count: int) -> np.ndarray:
        """The positions in `utilities` of the clients among which `count` are drawn."""
        return np.flatnonzero(utilities >= self.cutoff * np.sort(utilities)[-count])

    def utilities(self, state: State) -> np.ndarray:
        """The utility of each explored client; NaN for the others."""
        utility = state["utility"]
        clip = np.nanquantile(utility, CLIP, method="higher")
        statistical = scale_utilities(utility, utility, clip)
        recent = np.sqrt(0.1 * np.log(state["round"][0]) / state["last"])
        return np.maximum((statistical + recent) * self.slowdowns(state), np.finfo(float).tiny)

    def slowdowns(self, state: State) -> np.ndarray:
        """The factor on each client's utility, below 1 if it takes longer than preferred."""
        duration, preferred = state["duration"], self.preferred_duration(state)
        slow = duration > preferred
        factors = np.divide(preferred, duration, out=np.ones_like(duration), where=slow)
        return factors**self.penalty

    def preferred_duration(self, state: State) -> float:
        """The preferred duration of a round in simulated seconds."""
        return float(np.percentile(state["duration"], min(state["percentile"][0], 100)))

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        utility = view.sizes[cohort] * reports["loss_norm"]
        gained = utility[~np.isnan(utility)].sum()
        after = self.learn(state, cohort, utility, reports, gained)
        after["last"][cohort] = state["round"]
        return after

    def learn(
        self, state: State, cohort: Clients, utility: np.ndarray, reports: Reports, gained: float
    ) -> State:
        """The state after a round in which each client of the cohort had a utility, NaN if it did
        not answer, and a duration. The pacer is told how much utility the round `gained`."""
        after = {name: array.copy() for name, array in state.items()}
        answered = ~np.isnan(utility)
        after["utility"][cohort[answered]] = utility[answered]
        after["duration"][cohort[answered]] = reports["duration"][answered]
        after["last"][cohort[answered]] = state["round"]
        after["gained"] = np.append(state["gained"], gained)[-2 * self.window :]
        if len(after["gained"]) == 2 * self.window and state["round"][0] % self.window == 0:
            earlier, later = np.split(after["gained"], 2)
            percentile = float(state["percentile"][0])
            after["percentile"][0] = self.next_percentile(percentile, earlier.sum(), later.sum())
        after["round"] = state["round"] + 1
        return after

    def next_percentile(self, percentile: float, earlier: float, later: float) -> float:
        """The next percentile of the preferred duration, given what two windows gained."""
        return percentile + self.pace * (earlier > later)


def scale_utilities(utility: np.ndarray, among: np.ndarray, clip: float) -> np.ndarray:
    """Clip utilities at `clip`, subtract almost the least of `among`, and divide by their range."""
    low = LOW * np.nanmin(among)
    return (np.minimum(utility, clip) - low) / max(np.nanmax(among) - low, 1e-4)


AUGMENTED = 10  # at least so many times the exploited clients are admitted
FLAT, SHARP = 0.1, 5  # relative changes of the utility up to and from which the pacer acts


@dataclass(frozen=True, kw_only=True)
class OortFedScale(Oort):
    """Draws explored clients by their utility, and unexplored ones by the samples they train on.

    The first cohort is random; clients without samples are chosen only where no other is available.
    The statistical utility is the root mean square of the losses of a client's last batch, times
    the samples that a round takes of it. With k explored clients to draw, the candidates are the
    10 k + 1 highest, and all whose utility is at least `cutoff` of the (k + 1)-th. Unexplored
    clients are drawn from the largest, of which slow ones count less. Once nobody is unexplored,
    the clients that were explored last take part in every round: the code never forgets them. If
    the cohort would be too large, its slowest clients do not take part. The pacer raises the
    percentile of the preferred duration if the mean utility of exploited clients changed by up to a
    tenth from one `window` to the next, and lowers it if it changed by five times or more.
    """

    name: ClassVar[str] = "oort-fedscale"
    needs = Oort.needs - {"loss_norm"} | {"last_batch_loss_norm", "samples_per_round"}
    least: float = parameter(0.3, minimum=0, maximum=1, help="the least exploration")
    cutoff: float = parameter(0.05, **SHARE, help="share of the next best utility that admits")
    clip: float = parameter(0.9, **SHARE, help="the quantile of utilities that none exceeds")
    sample_window: float = parameter(5.0, minimum=1, help="unexplored candidates for each drawn")
    percentile: float = parameter(30.0, minimum=0, maximum=100, help="preferred duration, at first")

    def begin(self, view: View, rng: Rng) -> State:
        return super().begin(view, rng) | {
            "samples": view.reports["samples_per_round"].copy(),
            "newcomers": np.zeros(view.clients, dtype=bool),
        }

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        round, holders = state["round"][0], candidates[state["samples"][candidates] > 0]
        candidates = holders if len(holders) else candidates
        if round == 1 or not len(holders) or view.cohort >= len(candidates):
            return rng.choice(candidates, min(view.cohort, len(candidates)), replace=False)
        explored = candidates[~np.isnan(state["utility"][candidates])]
        epsilon = max(self.exploration * self.decay ** (round - 1), self.least)
        count = min(view.cohort - floor_share(view.cohort, epsilon), len(explored))
        exploited = explored[self._exploit(state, explored, count, rng)]
        new = candidates[is_new(state)[candidates]]
        if is_unexplored(state).any():
            new = new[self._explore(state, new, view.cohort - count, rng)]
        cohort = np.union1d(exploited, new)
        cohort = cohort if len(cohort) else candidates  # where all explore, but none is new
        return cohort[np.argsort(state["duration"][cohort], kind="stable")[: view.cohort]]

    def _explore(self, state: State, unexplored: np.ndarray, count: int, rng: Rng) -> np.ndarray:
        """Draw the positions of so many unexplored clients, or of all."""
        rewards = (state["samples"] * self.slowdowns(state))[unexplored]
        count = min(count, len(unexplored))
        largest = np.argsort(-rewards, kind="stable")[: int(self.sample_window * count)]
        weights = np.log(np.maximum(rewards[largest], np.finfo(float).tiny))
        return largest[draw_without_replacement(weights, count, rng)]

    def admitted_positions(self, utilities: np.ndarray, count: int) -> np.ndarray:
        order = np.argsort(-utilities, kind="stable")
        threshold = self.cutoff * utilities[order[min(count, len(order) - 1)]]
        return order[: max(int((utilities >= threshold).sum()), AUGMENTED * count + 1)]

    def utilities(self, state: State) -> np.ndarray:
        """The utility of each explored client, scaled to the range of all clients' utilities."""
        rewards = np.where(np.isnan(state["utility"]), state["samples"], state["utility"])
        positive = np.sort(rewards[rewards > 0]) if (rewards > 0).any() else np.zeros(1)
        clip = positive[min(int(len(positive) * self.clip), len(positive) - 1)]
        recent = np.sqrt(0.1 * np.log(state["round"][0] - 1) / state["last"])
        utilities = np.abs(scale_utilities(rewards, positive, clip) + recent)
        return np.maximum(utilities * self.slowdowns(state), np.finfo(float).tiny)

    def preferred_duration(self, state: State) -> float:
        durations, percentile = np.sort(state["duration"]), float(state["percentile"][0])
        index = min(int(len(durations) * percentile / 100), len(durations) - 1)
        return float(durations[index]) if percentile < 100 else float("inf")

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        utility = state["samples"][cohort] * reports["last_batch_loss_norm"]
        exploited = utility[~is_new(state)[cohort] & ~np.isnan(utility)]
        gained = exploited.sum() / (len(exploited) + 1e-4)
        after = self.learn(state, cohort, utility, reports, gained)
        if is_unexplored(state).any():
            after["newcomers"] = is_unexplored(state) & np.isin(np.arange(view.clients), cohort)
        return after

    def next_percentile(self, percentile: float, earlier: float, later: float) -> float:
        if abs(later - earlier) <= FLAT * earlier:
            return min(100.0, percentile + self.pace)
        if abs(later - earlier) >= SHARP * earlier:
            return max(self.pace, percentile - self.pace)
        return percentile


def is_unexplored(state: State) -> np.ndarray:
    """Whether each client has samples, but never reported its utility."""
    return np.isnan(state["utility"]) & (state["samples"] > 0)


def is_new(state: State) -> np.ndarray:
    """Whether each client is unexplored; if none is, whether it was among the last explored."""
    unexplored = is_unexplored(state)
    return unexplored if unexplored.any() else state["newcomers"]


@dataclass(frozen=True, kw_only=True)
class Tifl(Selector, ConditionalNeeds):
    """Draws each cohort from one of several tiers of equally fast clients (algorithm 2).

    Clients are sorted by how long a round is expected to take them, and split into tiers of equal
    size; ties are broken at random. A tier has credits for its share of the rounds, and is drawn
    only while some are left and any of its clients is available; all are drawn alike at first. In
    every `interval`-th round all available clients evaluate the global model on their own samples.
    If the mean accuracy of the tier drawn last is then no higher than an interval before, tiers are
    drawn by the rank of their accuracy, the worst most often. A cohort is no larger than its tier.
    """

    name: ClassVar[str] = "tifl"
    needs: ClassVar[frozenset[str]] = frozenset({"expected_duration", "candidate_accuracy"})
    tiers: int = parameter(5, minimum=1, help="number of tiers")
    interval: int = parameter(10, minimum=1, help="I: rounds between evaluations of the tiers")
    credits: float = parameter(1.0, minimum=1, help="cohorts of a tier, in multiples of its share")

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
            "accuracy": np.full(self.tiers, np.nan),
            "last": np.zeros(1, dtype=np.int64),
        }

    def asks(self, state: State, view: View) -> bool:
        return bool(state["round"][0] % self.interval == 0)

    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        state, candidates = self._evaluated(state, view), leave_out_empty(candidates, view)
        tier = state["tier"][candidates]
        is_present = np.bincount(tier, minlength=self.tiers) > 0
        odds = np.where(is_present & (state["credits"] > 0), state["odds"], 0)
        odds = odds if odds.any() else is_present.astype(float)
        members = candidates[tier == rng.choice(self.tiers, p=odds / odds.sum())]
        return rng.choice(members, min(view.cohort, len(members)), replace=False)

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
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
