"""Oort as FedScale's code has it, which is not its paper's algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import draw_without_replacement
from cohort.selection.oort import Oort, scale_utilities
from cohort.selection.selector import Reports, State, View

AUGMENTED = 10  # at least so many times the exploited clients are admitted
FLAT, SHARP = 0.1, 5  # relative changes of the utility up to and from which the pacer acts


@dataclass(frozen=True, kw_only=True)
class OortFedScale(Oort):
    """Draws explored clients by their utility, and unexplored ones by the samples they train on.

    The first cohort is random; clients without samples are never chosen. The statistical utility is
    the root mean square of the losses of a client's last batch, times the samples that a round
    takes of it. Admitted are those that have at least `cutoff` of the best utility that would not
    be taken, and more than ten times those that are drawn. Unexplored clients are drawn from the
    largest, of which slow ones count less. Once nobody is unexplored, the clients that were
    explored last take part in every round: the code never forgets them. If the cohort would be too
    large, its slowest clients do not take part.

    The pacer raises the percentile of the preferred duration if the mean utility of exploited
    clients changed by up to a tenth from one `window` to the next, and lowers it if it changed by
    five times or more.
    """

    name: ClassVar[str] = "oort-fedscale"
    needs: ClassVar[frozenset[str]] = frozenset(
        {"last_batch_loss_norm", "samples_per_round", "duration", "expected_duration"}
    )
    least: float = parameter(0.3, minimum=0, maximum=1, help="the least exploration")
    cutoff: float = parameter(
        0.05, minimum=0, maximum=1, help="share of the next best utility that admits"
    )
    clip: float = parameter(
        0.9, minimum=0, maximum=1, help="the quantile of utilities that none exceeds"
    )
    sample_window: float = parameter(
        5.0, minimum=1, help="unexplored clients to draw from, as a multiple of those drawn"
    )
    percentile: float = parameter(
        30.0, minimum=0, maximum=100, help="percentile of the preferred duration, at first"
    )

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return super().begin(view, rng) | {
            "samples": view.reports["samples_per_round"].copy(),
            "newcomers": np.zeros(view.clients, dtype=bool),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        round, candidates = state["round"][0], candidates[state["samples"][candidates] > 0]
        if round == 1 or view.cohort >= len(candidates):
            return rng.choice(candidates, min(view.cohort, len(candidates)), replace=False)
        explored = candidates[~np.isnan(state["utility"][candidates])]
        epsilon = max(self.exploration * self.decay ** (round - 1), self.least)
        count = min(view.cohort - int(view.cohort * epsilon), len(explored))
        exploited = explored[self._draw_exploited(state, explored, count, rng)]
        new = candidates[is_new(state)[candidates]]
        if is_unexplored(state).any():
            new = new[self._draw_unexplored(state, new, view.cohort - count, rng)]
        cohort = np.union1d(exploited, new)
        return cohort[np.argsort(state["duration"][cohort], kind="stable")[: view.cohort]]

    def _draw_unexplored(
        self, state: State, unexplored: np.ndarray, places: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw the positions of as many unexplored clients as there are places."""
        rewards = (state["samples"] * self.slowdowns(state))[unexplored]
        count = min(places, len(unexplored))
        largest = np.argsort(-rewards, kind="stable")[: int(self.sample_window * count)]
        weights = np.log(np.maximum(rewards[largest], np.finfo(float).tiny))
        return largest[draw_without_replacement(weights, count, rng)]

    def admitted_positions(self, utilities: np.ndarray, count: int) -> np.ndarray:
        order = np.argsort(-utilities, kind="stable")
        least = self.cutoff * utilities[order[min(count, len(order) - 1)]]
        return order[: max(int((utilities >= least).sum()), AUGMENTED * count + 1)]

    def utilities(self, state: State) -> np.ndarray:
        """The utility of each explored client, scaled to the range of all clients' utilities."""
        rewards = np.where(np.isnan(state["utility"]), state["samples"], state["utility"])
        positive = np.sort(rewards[rewards > 0])
        clip = positive[min(int(len(positive) * self.clip), len(positive) - 1)]
        recent = np.sqrt(0.1 * np.log(state["round"][0] - 1) / state["last"])
        utilities = np.abs(scale_utilities(rewards, positive, clip) + recent) * self.slowdowns(
            state
        )
        return np.maximum(utilities, np.finfo(float).tiny)

    def preferred_duration(self, state: State) -> float:
        durations, percentile = np.sort(state["duration"]), float(state["percentile"][0])
        index = min(int(len(durations) * percentile / 100), len(durations) - 1)
        return float(durations[index]) if percentile < 100 else float("inf")

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        utility = state["samples"][cohort] * reports["last_batch_loss_norm"]
        exploited = utility[~is_new(state)[cohort] & ~np.isnan(utility)]
        gained = exploited.sum() / (len(exploited) + 1e-4)
        after = self.learn(state, cohort, utility, reports["duration"], gained)
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
    result: np.ndarray = np.isnan(state["utility"]) & (state["samples"] > 0)
    return result


def is_new(state: State) -> np.ndarray:
    """Whether each client is unexplored, or explored last if nobody is."""
    unexplored = is_unexplored(state)
    return unexplored if unexplored.any() else state["newcomers"]
