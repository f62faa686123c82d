"""Round-robin: turns are equally many."""

from __future__ import annotations

import numpy as np

from cohort.selection.selector import View
from cohort.selection.simple import RoundRobin

VIEW = View(clients=7, cohort=3, sizes=np.ones(7))


def test_every_seven_rounds_each_client_has_three_turns():
    selector, rng = RoundRobin(), np.random.default_rng(0)
    state, turns = selector.begin(VIEW, rng), np.zeros(7, dtype=int)
    for round in range(1, 22):
        cohort = selector.select(state, np.arange(7), VIEW, rng)
        turns[cohort] += 1
        assert np.ptp(turns) <= 1
        assert round % 7 or set(turns) == {3 * round // 7}
        state = selector.observe(state, cohort, {}, VIEW)


def test_who_was_not_there_comes_next():
    selector, rng = RoundRobin(), np.random.default_rng(0)
    state = {"order": np.array([4, 0, 6, 2, 1, 5, 3])}
    cohort = selector.select(state, np.array([0, 1, 2, 3]), VIEW, rng)
    assert cohort.tolist() == [0, 2, 1]
    state = selector.observe(state, cohort, {}, VIEW)
    assert state["order"].tolist() == [4, 6, 5, 3, 0, 2, 1]


def test_the_order_is_drawn():
    orders = {
        tuple(RoundRobin().begin(VIEW, np.random.default_rng(seed))["order"]) for seed in range(9)
    }
    assert len(orders) == 9
