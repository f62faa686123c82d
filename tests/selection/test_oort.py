"""Oort against its algorithm 1 written out with loops, and its character."""

import math

import numpy as np
import pytest

from cohort.selection.oort import Oort
from cohort.selection.selector import View

CLIENTS, COHORT = 14, 5
SIZES = np.random.default_rng(0).integers(5, 50, CLIENTS)
DURATIONS = np.random.default_rng(1).lognormal(size=CLIENTS)


def view(durations: np.ndarray = DURATIONS) -> View:
    reports = {"expected_duration": durations}
    return View(clients=CLIENTS, cohort=COHORT, sizes=SIZES, reports=reports)


def drawn(weights: list[float], count: int, rng: np.random.Generator) -> list[int]:
    """Positions drawn one after another by weight: the largest perturbed logarithms."""
    noise = rng.gumbel(size=len(weights))
    scores = [math.log(weight) + extra for weight, extra in zip(weights, noise, strict=True)]
    return sorted(range(len(weights)), key=lambda index: -scores[index])[:count]


class Algorithm1:
    """Oort's selection and pacer, one client after another."""

    def __init__(self, selector: Oort):
        self.selector, self.R, self.percentile = selector, 0, selector.percentile
        self.U: dict[int, float] = {}
        self.L: dict[int, int] = {}
        self.D = dict(enumerate(DURATIONS.tolist()))
        self.gained: list[float] = []

    def select(self, rng: np.random.Generator) -> list[int]:
        self.R += 1
        s = self.selector
        epsilon = max(s.exploration * s.decay ** (self.R - 1), s.least)
        new = [client for client in range(CLIENTS) if client not in self.U]
        explored = [client for client in range(CLIENTS) if client in self.U]
        exploiting = min(int((1 - epsilon) * COHORT), len(explored))
        exploring = min(COHORT - exploiting, len(new))
        exploiting = min(COHORT - exploring, len(explored))
        cohort = []
        if exploiting:
            utility = self.utilities(explored)
            last = sorted(utility.values(), reverse=True)[exploiting - 1]
            admitted = [client for client in explored if utility[client] >= s.cutoff * last]
            positions = drawn([utility[client] for client in admitted], exploiting, rng)
            cohort = [admitted[position] for position in positions]
        positions = drawn([1 / self.D[client] for client in new], exploring, rng)
        return cohort + [new[position] for position in positions]

    def utilities(self, explored: list[int]) -> dict[int, float]:
        ordered = sorted(self.U.values())
        clip = ordered[math.ceil(0.95 * (len(ordered) - 1))]
        low, high = 0.999 * ordered[0], ordered[-1]
        preferred = np.percentile(list(self.D.values()), self.percentile)
        utility = {}
        for client in explored:
            value = (min(self.U[client], clip) - low) / max(high - low, 1e-4)
            value += math.sqrt(0.1 * math.log(self.R) / self.L[client])
            if self.D[client] > preferred:
                value *= (preferred / self.D[client]) ** self.selector.penalty
            utility[client] = value
        return utility

    def observe(self, cohort: list[int], norms: np.ndarray, durations: np.ndarray) -> None:
        self.gained.append(0.0)
        for client, norm, duration in zip(cohort, norms, durations, strict=True):
            self.L[client] = self.R
            if not math.isnan(norm):
                self.U[client], self.D[client] = float(SIZES[client] * norm), float(duration)
                self.gained[-1] += self.U[client]
        window = self.selector.window
        if self.R % window or 2 * window > self.R:
            return
        if sum(self.gained[-2 * window : -window]) > sum(self.gained[-window:]):
            self.percentile = self.percentile + self.selector.pace


@pytest.mark.parametrize("seed", range(4))
def test_it_is_algorithm_1(seed: int):
    """The same cohorts in 60 rounds in which some clients do not answer and losses fall."""
    selector, rng = Oort(window=5), np.random.default_rng(seed)
    state, literal = selector.begin(view(), rng), Algorithm1(selector)
    for round in range(1, 61):
        draws = np.random.default_rng([seed, round]), np.random.default_rng([seed, round])
        cohort = selector.select(state, np.arange(CLIENTS), view(), draws[0])
        assert cohort.tolist() == literal.select(draws[1])
        norms, durations = rng.random(COHORT) / round, rng.lognormal(size=COHORT)
        norms[rng.random(COHORT) < 0.2] = np.nan
        literal.observe(cohort.tolist(), norms, durations)
        reports = {"loss_norm": norms, "duration": durations}
        state = selector.observe(state, cohort, reports, view())
    assert state["percentile"][0] == literal.percentile > 10
