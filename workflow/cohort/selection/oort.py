"""Oort (Lai et al., OSDI 2021): clients with high losses that are fast enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import draw_without_replacement, leave_out_empty
from cohort.selection.selector import Reports, Selector, State, View

CLIP = 0.95  # the quantile of utilities that none exceeds
SMALLEST = 0.999  # the least utility is this close to 0 after scaling, so that all may be drawn


@dataclass(frozen=True, kw_only=True)
class Oort(Selector):
    """Draws explored clients by their utility, and unexplored ones by their speed (algorithm 1).

    The statistical utility of a client is its number of samples times the root mean square of their
    losses when it last trained, clipped at the 95th percentile and scaled to [0, 1], plus
    sqrt(0.1 ln(round) / round of its last turn). A client that takes longer than preferred loses
    (preferred / its duration) ** penalty. Admitted are those that have at least `cutoff` of the
    last utility that would be taken. The preferred duration is a percentile of all durations,
    which the pacer raises, once every `window` rounds, if their utility is below that of those
    before. Clients without samples are chosen only if a cohort would be too small without them.
    """

    name: ClassVar[str] = "oort"
    needs: ClassVar[frozenset[str]] = frozenset({"loss_norm", "duration", "expected_duration"})
    exploration: float = parameter(
        0.9, minimum=0, maximum=1, help="epsilon: share of the cohort that is unexplored at first"
    )
    decay: float = parameter(
        0.98, exclusiveMinimum=0, maximum=1, help="of the exploration, in every round"
    )
    least: float = parameter(0.2, minimum=0, maximum=1, help="the least exploration")
    cutoff: float = parameter(
        0.95, minimum=0, maximum=1, help="c: share of the last utility that admits"
    )
    penalty: float = parameter(2.0, minimum=0, help="alpha: exponent for slow clients")
    percentile: float = parameter(
        10.0, minimum=0, maximum=100, help="percentile of the preferred duration, at first"
    )
    pace: float = parameter(5.0, minimum=0, help="by how many points the pacer raises it")
    window: int = parameter(20, minimum=1, help="W: rounds that the pacer looks back")

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {
            "round": np.ones(1, dtype=np.int64),
            "utility": np.full(view.clients, np.nan),
            "last": np.ones(view.clients, dtype=np.int64),
            "duration": view.reports["expected_duration"].copy(),
            "percentile": np.array([self.percentile]),
            "gained": np.zeros(0),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        candidates = leave_out_empty(candidates, view)
        is_explored = ~np.isnan(state["utility"][candidates])
        explored, unexplored = candidates[is_explored], candidates[~is_explored]
        epsilon = max(self.exploration * self.decay ** (state["round"][0] - 1), self.least)
        exploiting = min(int((1 - epsilon) * view.cohort), len(explored))
        exploring = min(view.cohort - exploiting, len(unexplored))
        exploiting = min(view.cohort - exploring, len(explored))
        by_utility = explored[self._draw_exploited(state, explored, exploiting, rng)]
        speeds = -np.log(np.maximum(state["duration"][unexplored], np.finfo(float).tiny))
        return np.concatenate(
            [by_utility, unexplored[draw_without_replacement(speeds, exploring, rng)]]
        )

    def _draw_exploited(
        self, state: State, explored: np.ndarray, count: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw `count` positions of explored clients in proportion to utility, among those near the
        best."""
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
        statistical = scale_utilities(
            utility, utility, np.nanquantile(utility, CLIP, method="higher")
        )
        recent = np.sqrt(0.1 * np.log(state["round"][0]) / state["last"])
        result: np.ndarray = (statistical + recent) * self.slowdowns(state)
        return np.maximum(result, np.finfo(float).tiny)

    def slowdowns(self, state: State) -> np.ndarray:
        """The factor on each client's utility: below 1 if it takes longer than preferred, else
        1."""
        duration, preferred = state["duration"], self.preferred_duration(state)
        slow = duration > preferred
        factors = np.divide(preferred, duration, out=np.ones_like(duration), where=slow)
        result: np.ndarray = factors**self.penalty
        return result

    def preferred_duration(self, state: State) -> float:
        """The preferred duration of a round in simulated seconds."""
        return float(np.percentile(state["duration"], min(state["percentile"][0], 100)))

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        utility = view.sizes[cohort] * reports["loss_norm"]
        gained = utility[~np.isnan(utility)].sum()
        after = self.learn(state, cohort, utility, reports["duration"], gained)
        after["last"][cohort] = state["round"]
        return after

    def learn(
        self,
        state: State,
        cohort: np.ndarray,
        utility: np.ndarray,
        duration: np.ndarray,
        gained: float,
    ) -> State:
        """The state after a round in which each client of the cohort had a utility, NaN if it did
        not answer, and a duration. The pacer is told how much utility the round `gained`."""
        after = {name: array.copy() for name, array in state.items()}
        answered = ~np.isnan(utility)
        after["utility"][cohort[answered]] = utility[answered]
        after["duration"][cohort[answered]] = duration[answered]
        after["last"][cohort[answered]] = state["round"]
        after["gained"] = np.append(state["gained"], gained)[-2 * self.window :]
        rounds, window = int(state["round"][0]), self.window
        if rounds >= 2 * window and rounds % window == 0:
            earlier, later = np.split(after["gained"], 2)
            after["percentile"][0] = self.next_percentile(
                float(state["percentile"][0]), earlier.sum(), later.sum()
            )
        after["round"] = state["round"] + 1
        return after

    def next_percentile(self, percentile: float, earlier: float, later: float) -> float:
        """The next percentile of the preferred duration, given what two windows gained."""
        return percentile + self.pace * (earlier > later)


def scale_utilities(utility: np.ndarray, among: np.ndarray, clip: float) -> np.ndarray:
    """Scale utilities to units of the range of those in `among`, after clipping those above
    `clip`."""
    low = SMALLEST * np.nanmin(among)
    result: np.ndarray = (np.minimum(utility, clip) - low) / max(np.nanmax(among) - low, 1e-4)
    return result
