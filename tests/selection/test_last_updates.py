"""DivFL and HiCS-FL, which remember the last update of each client."""

import math

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, ward

from cohort.selection.selector import State, View
from cohort.selection.updates import DivFl, HicsFl
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
        reports = {"update": updates[members]}
        state = selector.observe(state, members, reports, alike(clients, cohort))
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


def test_who_never_answered_comes_first():
    selector, run_view = DivFl(), alike(6, 3)
    state = selector.begin(run_view, np.random.default_rng(0))
    updates = np.array([[1.0, 0], [np.nan, 1e300], [0, 1]])
    state = selector.observe(state, np.array([4, 2, 0]), {"update": updates}, run_view)
    assert state["seen"].tolist() == [True, False, False, False, True, False]
    first = selector.select(state, np.arange(6), run_view, np.random.default_rng(2))
    assert set(first) < {1, 2, 3, 5}
    second = selector.select(state, np.array([0, 3, 4]), run_view, np.random.default_rng(2))
    assert second[0] == 3 and set(second) == {0, 3, 4}


def test_nobody_answers():
    selector, run_view = DivFl(), alike(4, 2)
    state = selector.begin(run_view, np.random.default_rng(0))
    nothing = np.full((2, 3), np.nan)
    state = selector.observe(state, np.array([0, 1]), {"update": nothing}, run_view)
    assert len(set(selector.select(state, np.arange(4), run_view, np.random.default_rng(0)))) == 2


def state_of(updates: np.ndarray, round: int) -> State:
    seen = np.ones(len(updates), dtype=bool)
    return {"round": np.array([round]), "seen": seen, "updates": updates}


def entropy(update: list[float], temperature: float) -> float:
    """The entropy of the softmax of a bias update, in nats."""
    powers = [math.exp(value / temperature) for value in update]
    shares = [power / sum(powers) for power in powers]
    return -sum(share * math.log(share) for share in shares if share)


def distance(left: np.ndarray, other: np.ndarray, selector: HicsFl) -> float:
    """How far two clients are apart: the angle, and the weighted difference of entropies."""
    product = float(left @ other) / math.sqrt(float(left @ left) * float(other @ other))
    entropies = [entropy(list(update), selector.temperature) for update in (left, other)]
    return math.acos(min(1.0, product)) + selector.weight * abs(entropies[0] - entropies[1])


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


@pytest.mark.filterwarnings("ignore:The symmetric non-negative hollow observation matrix")
@pytest.mark.parametrize("seed", range(5))
def test_entropies_and_clusters_are_those_of_the_formulas(seed: int):
    selector = HicsFl(temperature=0.5)
    updates = np.random.default_rng(seed).normal(size=(9, 4))
    entropies = selector.entropies(updates)
    expected = [entropy(list(update), 0.5) for update in updates]
    np.testing.assert_allclose(entropies, expected, rtol=1e-12)
    rows = [[distance(update, other, selector) for other in updates] for update in updates]
    tree = ward(np.array(rows))  # scipy takes rows as points too
    labels = cut_tree(tree, n_clusters=3).ravel()
    assert partition(selector.clusters(updates, entropies, 3)) == partition(labels)


def test_clusters_are_drawn_by_their_mean_entropy_and_clients_by_size():
    """Two clusters of two: uniform updates and skewed ones, at half of all rounds."""
    updates = np.array([[0.0, 0, 0], [0.01, 0, 0], [9.0, 0, 0], [9.01, 0, 0]])
    sizes = np.array([1.0, 3, 1, 1])
    selector = HicsFl(temperature=1, diversity=2)
    high, low = (
        np.mean([entropy(list(updates[row]), 1) for row in rows]) for rows in ((0, 1), (2, 3))
    )
    odds = math.exp(2 * 0.5 * high), math.exp(2 * 0.5 * low)
    share = odds[0] / sum(odds)
    expected = np.array([share / 4, share * 3 / 4, (1 - share) / 2, (1 - share) / 2])
    view = View(clients=4, cohort=2, rounds=100, sizes=sizes)
    args = state_of(updates, 50), np.arange(4), view
    draws = [selector.select(*args, np.random.default_rng(seed))[0] for seed in range(4000)]
    frequencies = np.bincount(draws, minlength=4) / 4000
    assert np.all(np.abs(frequencies - expected) < 4 * np.sqrt(expected / 4000))


def test_at_the_end_all_clusters_are_drawn_alike():
    updates = np.array([[0.0, 0, 0], [0.01, 0, 0], [9.0, 0, 0]])
    selector, state = HicsFl(temperature=1, diversity=50), state_of(updates, 100)
    args = state, np.arange(3), alike(3, 2, 100)
    draws = [selector.select(*args, np.random.default_rng(seed))[0] for seed in range(2000)]
    assert abs(np.mean(np.array(draws) == 2) - 0.5) < 4 * 0.5 / math.sqrt(2000)


def test_every_client_is_chosen_once_first_and_nobody_twice_in_a_round():
    selector, rng, run_view = HicsFl(), np.random.default_rng(0), alike(10, 4, 100)
    state, first = selector.begin(run_view, rng), []
    for round in range(8):
        cohort = selector.select(state, np.arange(10), run_view, rng)
        assert len(set(cohort)) == 4
        first += cohort.tolist() if round < 2 else []
        state = selector.observe(state, cohort, {"bias_update": rng.normal(size=(4, 3))}, run_view)
        assert state["seen"].sum() == min(4 * (round + 1), 10)
    assert len(set(first)) == 8


def test_who_does_not_answer_keeps_its_update():
    selector, run_view = HicsFl(), alike(3, 2, 100)
    state = selector.begin(run_view, np.random.default_rng(0))
    reports = np.array([[1.0, 2], [np.nan, np.nan]])
    state = selector.observe(state, np.array([2, 0]), {"bias_update": reports}, run_view)
    assert state["seen"].tolist() == [False, False, True]
    assert state["updates"].tolist() == [[0, 0], [0, 0], [1, 2]]


def test_absent_clients_are_represented_too():
    """At 0, 1, 10, 11 and 12, of which the last two are away: the one at 10 is nearest to all."""
    line = np.array([0.0, 1, 10, 11, 12])
    state = {"seen": np.ones(5, bool), "updates": np.ones((5, 1), np.float32)}
    state["distances"] = np.abs(np.subtract.outer(line, line))
    there, rng = np.arange(3), np.random.default_rng(0)
    assert DivFl().select(state, there, alike(5, 1), rng).tolist() == [2]
