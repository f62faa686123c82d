"""Team Darts' UCB: clients with high rewards, or rarely chosen ones, with some chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.selection.draws import top_clients
from cohort.selection.selector import Reports, Selector, State, View

TINY = 1e-10  # added to counts, so that nothing is divided by zero


@dataclass(frozen=True, kw_only=True)
class Ucb(Selector):
    """Chooses the clients with the highest upper confidence bounds; in the first rounds, and later
    with a small probability, a uniform cohort.

    A client's bound is its mean reward plus exploration * sqrt(ln(all choices) / its own choices).
    The reward of a round is the accuracy of the local model on the client's own samples (the slides
    do not say which). A client that does not answer counts as chosen but gets no reward. Ties are
    broken at random.
    """

    name: ClassVar[str] = "ucb"
    needs: ClassVar[frozenset[str]] = frozenset({"local_accuracy"})
    exploration: float = parameter(
        1.0, exclusiveMinimum=0, help="c: weight of the bonus of rarely chosen clients"
    )
    epsilon: float = parameter(
        0.1, minimum=0, maximum=1, help="probability of a uniform cohort after the first rounds"
    )
    initial: int = parameter(3, minimum=0, help="first rounds, in which the cohort is uniform")

    def begin(self, view: View, rng: np.random.Generator) -> State:
        return {
            "round": np.zeros(1, dtype=np.int64),
            "count": np.zeros(view.clients, dtype=np.int64),
            "rewards": np.zeros(view.clients, dtype=np.int64),
            "reward": np.zeros(view.clients),
        }

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        if state["round"][0] < self.initial or rng.random() < self.epsilon:
            return rng.choice(candidates, view.cohort, replace=False)
        return top_clients(self.bounds(state)[candidates], candidates, view.cohort, rng)

    def bounds(self, state: State) -> np.ndarray:
        """The upper confidence bound of each client."""
        mean = state["reward"] / np.maximum(state["rewards"], 1)
        spread = max(np.log(state["count"].sum() + TINY), 0.0)  # negative before the first choice
        return mean + self.exploration * np.sqrt(spread / (state["count"] + TINY))

    def observe(self, state: State, cohort: np.ndarray, reports: Reports, view: View) -> State:
        after = {name: array.copy() for name, array in state.items()}
        rewards = reports["local_accuracy"]
        answered = ~np.isnan(rewards)
        after["round"] += 1
        after["count"][cohort] += 1
        after["rewards"][cohort[answered]] += 1
        after["reward"][cohort[answered]] += rewards[answered]
        return after
