"""DivFL against brute force, and what duplicates and silence do to it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cohort.selection.selector import State
from cohort.selection.updates import DivFl, choose_facilities
from tests.selection.views import alike


def cost(distances: np.ndarray, chosen: list[int]) -> float:
    """The sum over clients of the distance to the nearest chosen one."""
    return sum(min(float(row[client]) for client in chosen) for row in distances)


def observed(updates: np.ndarray, cohort: int) -> State:
    """The state after everybody sent its update, `cohort` clients at a time."""
    clients = len(updates)
    selector, rng = DivFl(), np.random.default_rng(0)
    state = selector.begin(alike(clients, cohort), rng)
    for first in range(0, clients, cohort):
        members = np.arange(first, min(first + cohort, clients))
        state = selector.observe(
            state, members, {"update": updates[members]}, alike(clients, cohort)
        )
    return state


@pytest.mark.parametrize("seed", range(10))
def test_each_choice_lowers_the_cost_most(seed: int):
    """Against a search of all clients at each step, with distances computed anew."""
    updates = np.random.default_rng(seed).normal(size=(9, 5)).astype(np.float32)
    state = observed(updates, 4)
    distances = np.array([[np.linalg.norm(a - b) for b in updates] for a in updates])
    np.testing.assert_allclose(state["distances"], distances, atol=1e-5)
    expected: list[int] = []
    for _ in range(4):
        rest = [client for client in range(9) if client not in expected]
        expected.append(min(rest, key=lambda client: cost(distances, [*expected, client])))
    cohort = DivFl().select(state, np.arange(9), alike(9, 4), np.random.default_rng(0))
    assert cohort.tolist() == expected


@pytest.mark.parametrize("seed", range(10))
def test_greedy_is_as_good_as_theory_says(seed: int):
    """The gain over the worst single client is at least 1 - 1/e of the best cohort's."""
    updates = np.random.default_rng(seed).normal(size=(8, 3))
    distances = np.linalg.norm(updates[:, None] - updates, axis=2)
    worst = distances.max(axis=1).sum()
    best = min(cost(distances, list(three)) for three in itertools.combinations(range(8), 3))
    gain = worst - cost(distances, choose_facilities(distances, 3).tolist())
    assert gain >= (1 - 1 / np.e) * (worst - best)


def test_of_two_equal_clients_one_is_enough():
    updates = np.repeat(np.diag([1.0, 2, 3, 4]), 2, axis=0)
    cohort = DivFl().select(
        observed(updates, 3), np.arange(8), alike(8, 4), np.random.default_rng(0)
    )
    assert sorted(client // 2 for client in cohort) == [0, 1, 2, 3]


def test_who_never_answered_comes_first():
    selector, seen = DivFl(), alike(6, 3)
    state = selector.begin(seen, np.random.default_rng(0))
    updates = np.array([[1.0, 0], [np.nan, np.nan], [0, 1]])
    state = selector.observe(state, np.array([4, 2, 0]), {"update": updates}, seen)
    assert state["seen"].tolist() == [True, False, False, False, True, False]
    first = selector.select(state, np.arange(6), seen, np.random.default_rng(2))
    assert set(first) < {1, 2, 3, 5}
    both = selector.select(state, np.array([0, 3, 4]), seen, np.random.default_rng(2))
    assert both[0] == 3 and set(both) == {0, 3, 4}


def test_nobody_answers():
    selector, seen = DivFl(), alike(4, 2)
    state = selector.begin(seen, np.random.default_rng(0))
    nothing = np.full((2, 3), np.nan)
    state = selector.observe(state, np.array([0, 1]), {"update": nothing}, seen)
    assert len(set(selector.select(state, np.arange(4), seen, np.random.default_rng(0)))) == 2
