"""UCB against the slides' pseudo-code."""

import math

import numpy as np
import pytest

from cohort.selection.selector import View
from cohort.selection.simple import Ucb
from tests.selection.literal import UcbPseudocode

CLIENTS, COHORT = 12, 5
VIEW = View(clients=CLIENTS, cohort=COHORT, sizes=np.ones(CLIENTS))


@pytest.mark.parametrize(
    ("exploration", "epsilon", "initial"), [(1, 0.1, 3), (0.2, 0, 0), (3, 0.5, 10), (1, 1, 0)]
)
@pytest.mark.parametrize("answering", [1.0, 0.7])
def test_it_is_the_pseudocode(exploration: float, epsilon: float, initial: int, answering: float):
    """The same cohorts in 200 rounds, also where clients do not answer: they count as chosen, but get no reward."""
    selector = Ucb(exploration=exploration, epsilon=epsilon, initial=initial)
    literal = UcbPseudocode(CLIENTS, COHORT, exploration, epsilon, initial)
    state, rng = selector.begin(VIEW, np.random.default_rng(0)), np.random.default_rng(2)
    for round in range(1, 201):
        draws = np.random.default_rng([1, round]), np.random.default_rng([1, round])
        cohort = selector.select(state, np.arange(CLIENTS), VIEW, draws[0])
        assert cohort.tolist() == literal.select(round, draws[1])
        rewards = np.where(rng.random(COHORT) < answering, rng.random(COHORT), np.nan)
        for client, reward in zip(cohort, rewards, strict=True):
            if not math.isnan(reward):
                literal.r[client].append(float(reward))
        state = selector.observe(state, cohort, {"local_accuracy": rewards}, VIEW)
    assert state["count"].tolist() == literal.n
    assert state["rewards"].tolist() == [len(own) for own in literal.r]
