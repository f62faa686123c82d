"""FedScale's Oort against its code's procedure, written anew with loops, and its character."""

import math

import numpy as np
import pytest

from cohort.selection.oort import OortFedScale
from cohort.selection.selector import View
from tests.selection.test_oort import drawn

CLIENTS, COHORT = 23, 5
SAMPLES = np.random.default_rng(0).integers(1, 65, CLIENTS)
DURATIONS = np.random.default_rng(1).lognormal(size=CLIENTS)
EVERYBODY = np.arange(CLIENTS)
REPORTS = {"expected_duration": DURATIONS, "samples_per_round": SAMPLES}
VIEW = View(clients=CLIENTS, cohort=COHORT, sizes=2 * SAMPLES, reports=REPORTS)


class Procedure:
    """What FedScale does with a client's reward, duration, time stamp and count, one client after
    another. Its clock is a round behind, as the first cohort is drawn without it."""

    def __init__(self, window: int):
        self.window, self.time, self.exploration, self.threshold = window, 0, 0.9, 30.0
        self.reward = dict(enumerate(SAMPLES.astype(float).tolist()))
        self.duration = dict(enumerate(DURATIONS.tolist()))
        self.stamp = dict.fromkeys(range(CLIENTS), 0)
        self.unexplored = set(range(CLIENTS))
        self.newest: list[int] = []  # the clients that were explored last
        self.exploited: list[int] = []
        self.successful: set[int] = set()
        self.history: list[float] = []

    def select(self, rng: np.random.Generator) -> list[int]:
        self.time += 1
        self.pace()
        ordered = sorted(self.duration.values())
        self.preferred = math.inf
        if self.threshold < 100:
            self.preferred = ordered[min(int(CLIENTS * self.threshold / 100), CLIENTS - 1)]
        scores = self.scores()
        self.exploration = max(self.exploration * 0.98, 0.3)
        count = min(COHORT - int(COHORT * self.exploration), len(scores))
        best = sorted(scores, key=lambda client: -scores[client])
        cutoff = 0.05 * scores[best[min(count, len(best) - 1)]]
        admitted: list[int] = []
        for client in best:
            if scores[client] < cutoff and len(admitted) > 10 * count:
                break
            admitted.append(client)
        positions = drawn([scores[client] for client in admitted], count, rng)
        self.exploited = [admitted[position] for position in positions]
        self.explore(COHORT - count, rng)
        chosen = sorted({*self.newest, *self.exploited})
        return sorted(chosen, key=lambda client: self.duration[client])[:COHORT]

    def scores(self) -> dict[int, float]:
        positive = sorted(reward for reward in self.reward.values() if reward > 0)
        clip = positive[min(int(len(positive) * 0.9), len(positive) - 1)]
        least, most = positive[0] * 0.999, positive[-1]
        scores = {}
        for client in sorted(set(range(CLIENTS)) - self.unexplored):
            score = (min(self.reward[client], clip) - least) / max(most - least, 1e-4)
            score += math.sqrt(0.1 * math.log(self.time) / self.stamp[client])
            scores[client] = abs(score) * self.slowdown(client)
        return scores

    def slowdown(self, client: int) -> float:
        if self.duration[client] <= self.preferred:
            return 1.0
        return (self.preferred / self.duration[client]) ** 2

    def explore(self, places: int, rng: np.random.Generator) -> None:
        if not self.unexplored:
            return  # and `newest` is what it was
        reward = {client: self.reward[client] * self.slowdown(client) for client in self.unexplored}
        count = min(len(reward), places)
        largest = sorted(sorted(reward), key=lambda client: -reward[client])[: 5 * count]
        positions = drawn([reward[client] for client in largest], count, rng)
        self.newest = [largest[position] for position in positions]

    def pace(self) -> None:
        if not self.unexplored:  # ours cannot tell that one of them was drawn by utility, too
            self.exploited = [client for client in self.exploited if client not in self.newest]
        rewards = [self.reward[client] for client in self.exploited if client in self.successful]
        self.history.append(sum(rewards) / (len(rewards) + 1e-4))
        self.successful = set()
        if self.time < 2 * self.window or self.time % self.window:
            return
        earlier = sum(self.history[-2 * self.window : -self.window])
        later = sum(self.history[-self.window :])
        if abs(later - earlier) <= earlier * 0.1:
            self.threshold = min(100.0, self.threshold + 5)
        elif abs(later - earlier) >= earlier * 5:
            self.threshold = max(5.0, self.threshold - 5)

    def learn(self, client: int, reward: float, duration: float, round: int) -> None:
        self.reward[client], self.duration[client], self.stamp[client] = reward, duration, round
        self.unexplored.discard(client)
        self.successful.add(client)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_the_code_does(seed: int):
    """The same cohorts in 120 rounds in which some clients do not answer. Losses are level, and
    grow a hundredfold after round 60, so that the pacer acts both ways."""
    selector, rng = OortFedScale(window=5), np.random.default_rng(seed)
    state, literal = selector.begin(VIEW, rng), Procedure(5)
    percentiles = []
    for round in range(1, 121):
        draws = np.random.default_rng([seed, round]), np.random.default_rng([seed, round])
        cohort = selector.select(state, EVERYBODY, VIEW, draws[0])
        if round > 1:
            assert sorted(cohort) == sorted(literal.select(draws[1]))
        norms, durations = rng.uniform(0.9, 1.1, len(cohort)), rng.lognormal(size=len(cohort))
        norms = np.where(rng.random(len(cohort)) < 0.1, np.nan, norms * (1 + 99 * (round > 60)))
        for client, norm, duration in zip(cohort, norms, durations, strict=True):
            if not math.isnan(norm):
                literal.learn(client, SAMPLES[client] * norm, duration, round)
        reports = {"last_batch_loss_norm": norms, "duration": durations}
        state = selector.observe(state, cohort, reports, VIEW)
        percentiles.append(state["percentile"][0])
    steps = np.diff(percentiles)
    assert literal.threshold in percentiles[-2:] and {-5, 0, 5} == set(steps)


def test_a_cohort_of_all_clients_is_everybody():
    """A cohort as large as the federation holds the two clients never explored, too."""
    view = View(clients=5, cohort=5, sizes=np.full(5, 9), reports={})
    view.reports.update(expected_duration=np.ones(5), samples_per_round=np.full(5, 9))
    selector, rng = OortFedScale(), np.random.default_rng(0)
    reports = {"last_batch_loss_norm": np.ones(3), "duration": np.ones(3)}
    state = selector.observe(selector.begin(view, rng), np.arange(3), reports, view)
    assert sorted(selector.select(state, np.arange(5), view, rng)) == [*range(5)]


def test_if_all_are_to_explore_and_nobody_is_unexplored_candidates_are_chosen():
    selector, rng = OortFedScale(least=1.0), np.random.default_rng(4)
    state, reports = selector.begin(VIEW, rng), {"last_batch_loss_norm": np.ones(CLIENTS)}
    reports |= {"duration": DURATIONS}
    state = selector.observe(state, EVERYBODY, reports, VIEW)
    assert len(selector.select(state, EVERYBODY[:7], VIEW, rng)) == COHORT


def test_clients_without_samples_and_losses_are_alike():
    reports = {"expected_duration": np.ones(3), "samples_per_round": np.zeros(3)}
    view = View(clients=3, cohort=1, sizes=np.zeros(3), reports=reports)
    rng = np.random.default_rng(0)
    state = OortFedScale().begin(view, rng) | {"round": np.array([2]), "utility": np.zeros(3)}
    assert np.unique(OortFedScale().utilities(state)).size == 1
    assert len(OortFedScale().select(state, np.arange(3), view, rng)) == 1
