"""Unbiased sampling: clustered by sizes and by updates, and by the norms of updates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.random import default_rng

from cohort.selection.sampling import BySize, ClusteredBySize, ClusteredByUpdates, OptimalSampling
from cohort.selection.selector import State, View

Urns = list[list[Fraction]]


def view_of(sizes: np.ndarray, cohort: int, norms: np.ndarray | None = None) -> View:
    reports = {} if norms is None else {"probe_norm": norms}
    return View(clients=len(sizes), cohort=cohort, sizes=sizes, reports=reports)


def state_of(updates: np.ndarray) -> State:
    return {"seen": updates.any(axis=1), "updates": updates}


def random_sizes(rng: np.random.Generator) -> np.ndarray:
    """Sizes of 2 to 12 clients, no sums of which are equal; some may be larger than an urn."""
    return (1e6 * rng.lognormal(sigma=rng.choice([0.3, 1.5]), size=rng.integers(2, 13))).astype(int)


def shares(urns: np.ndarray) -> Urns:
    """The probabilities of each draw, as fractions."""
    return [[Fraction(int(part), int(urn.sum())) for part in urn] for urn in urns]


def filled(urns: Urns, order: list[int], left: list[Fraction]) -> Urns:
    """Put what is left of each client into the first urn with room, in this order."""
    for client in order:
        urn = 0
        while left[client]:
            part = min(1 - sum(urns[urn]), left[client])
            urns[urn][client] += part
            left[client] -= part
            urn += left[client] > 0
    return urns


def algorithm_1(sizes: list[int], m: int) -> Urns:
    """Clients from the largest on, each of which fills one distribution after another."""
    masses = [Fraction(m * size, sum(sizes)) for size in sizes]
    order = sorted(range(len(sizes)), key=lambda client: -sizes[client])
    return filled([[Fraction(0)] * len(sizes) for _ in range(m)], order, masses)


def angle(left: np.ndarray, other: np.ndarray) -> float:
    lengths = math.sqrt(float(left @ left)) * math.sqrt(float(other @ other))
    return math.acos(max(-1.0, min(1.0, float(left @ other) / lengths))) if lengths else 0.0


def ward_merges(points: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Which clusters are merged, one pair after another: those that raise the squared distances to
    the clusters' means least."""
    clusters, merges = [[point] for point in range(len(points))], []
    while len(clusters) > 1:
        costs = {}
        for second in range(len(clusters)):
            for first in range(second):
                a, b = clusters[first], clusters[second]
                apart = points[a].mean(axis=0) - points[b].mean(axis=0)
                costs[first, second] = len(a) * len(b) / (len(a) + len(b)) * float(apart @ apart)
        first, second = min(costs, key=lambda pair: costs[pair])
        merges.append((clusters[first], clusters.pop(second)))
        clusters[first] = clusters[first] + merges[-1][1]
    return merges


def algorithm_2(sizes: list[int], updates: np.ndarray, m: int, shuffled: list[int]) -> Urns:
    """Groups of similar clients that no distribution is too small for; the m largest are kept, and
    the clients of the others fill what room these leave, in the order of `shuffled`."""
    clients = range(len(sizes))
    masses = [Fraction(m * size, sum(sizes)) for size in sizes]
    own = [client for client in clients for _ in range(math.floor(masses[client]))]
    rest = [mass - math.floor(mass) for mass in masses]
    angles = np.array([[angle(a, b) for b in updates] for a in updates])
    groups = [[client] for client in clients]
    for left, right in ward_merges(angles):
        if left in groups and right in groups and sum(rest[i] for i in left + right) <= 1:
            groups = [group for group in groups if group not in (left, right)] + [left + right]
    groups.sort(key=lambda group: sum(rest[i] for i in group))
    cut = len(groups) - (m - len(own))
    urns = [[rest[i] if i in group else Fraction(0) for i in clients] for group in groups[cut:]]
    order = [i for group in groups[:cut] for i in shuffled if i in group]
    filled(urns, order, [rest[i] if i in order else Fraction(0) for i in clients])
    return [[Fraction(i == client) for i in clients] for client in own] + urns


@pytest.mark.parametrize("seed", range(300))
def test_urns_are_those_of_the_algorithms(seed: int):
    rng = default_rng(seed)
    sizes, m = random_sizes(rng), int(rng.integers(1, 6))
    updates = rng.normal(size=(len(sizes), 4)).astype(np.float32)
    updates[: rng.integers(2)] = 0  # one may not be known yet
    clients, view = np.arange(len(sizes)), view_of(sizes, m)
    by_size = ClusteredBySize().urns({}, clients, view, rng)
    assert shares(by_size) == algorithm_1(sizes.tolist(), m)
    by_updates = ClusteredByUpdates().urns(state_of(updates), clients, view, default_rng(seed))
    shuffled = default_rng(seed).permutation(len(sizes)).tolist()
    assert shares(by_updates) == algorithm_2(sizes.tolist(), updates, m, shuffled)


@pytest.mark.parametrize("selector", [BySize(), ClusteredBySize(), ClusteredByUpdates()])
@pytest.mark.parametrize("seed", range(100))
def test_each_client_is_expected_as_often_as_its_share_of_the_samples_exactly(
    selector: BySize, seed: int
):
    """Among those who are there, some without samples, many with unknown or equal updates."""
    rng = default_rng(seed)
    sizes, m = rng.integers(0, 40, 15), int(rng.integers(1, 8))
    updates = rng.integers(0, 2, (15, 3)).astype(np.float32)
    there = rng.choice(15, int(rng.integers(m, 16)), replace=False)
    urns = shares(selector.urns(state_of(updates), there, view_of(sizes, m), rng))
    held = sizes[there].tolist() if sizes[there].any() else [1] * len(there)
    expected = [Fraction(m * size, sum(held)) for size in held]
    assert [sum(column) for column in zip(*urns, strict=True)] == expected
    assert all(sum(urn) == 1 for urn in urns) and len(urns) == m


def test_clients_with_similar_updates_share_an_urn():
    """Two directions of three clients each, of which a cohort of two has one each."""
    updates = np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 1], [1, -0.1], [-0.1, 1]], np.float32)
    view, rng = view_of(np.full(6, 5), 2), default_rng(0)
    urns = ClusteredByUpdates().urns(state_of(updates), np.arange(6), view, rng)
    assert {tuple(np.flatnonzero(urn)) for urn in urns} == {(0, 2, 4), (1, 3, 5)}
    cohorts = [
        ClusteredByUpdates().select(state_of(updates), np.arange(6), view, default_rng(seed))
        for seed in range(50)
    ]
    assert all({client % 2 for client in cohort} == {0, 1} for cohort in cohorts)


def formula_7(norms: list[float], m: int) -> list[float]:
    """The probabilities of the paper, from norms that are weighted by the clients' shares."""
    n, order = len(norms), sorted(range(len(norms)), key=lambda client: norms[client])
    ascending = [norms[client] for client in order]
    fitting = [
        last
        for last in range(n - m + 1, n + 1)
        if (m + last - n) * ascending[last - 1] <= sum(ascending[:last]) * (1 + 1e-12)
    ]
    last = max(fitting)
    small = sum(ascending[:last])
    result = [1.0] * n
    for client in order[:last]:
        result[client] = (m + last - n) * norms[client] / small
    return result


@pytest.mark.parametrize("seed", range(300))
def test_chances_are_those_of_the_formula(seed: int):
    rng = default_rng(seed)
    n = int(rng.integers(1, 15))
    m, sizes = int(rng.integers(1, n + 1)), rng.integers(1, 50, n)
    norms = rng.lognormal(sigma=rng.choice([0.1, 2]), size=n)
    chances = OptimalSampling().inclusion_probabilities(np.arange(n), view_of(sizes, m, norms))
    expected = formula_7((sizes / sizes.sum() * norms).tolist(), m)
    np.testing.assert_allclose(chances, expected, rtol=1e-10)
    assert chances.sum() == pytest.approx(m)


class Scripted:
    """A generator whose permutation and uniform number are given."""

    def __init__(self, order: np.ndarray, start: float):
        self.order, self.start = order, start

    def permutation(self, count: int) -> np.ndarray:
        return self.order

    def random(self) -> float:
        return self.start


@pytest.mark.parametrize("seed", range(100))
def test_weighted_updates_are_the_mean_of_the_pool_in_expectation(seed: int):
    """Over all starts of the systematic sample, between which nothing changes, in a random order;
    some clients hold no samples, and some updates are zero."""
    rng = default_rng(seed)
    pool = rng.choice(20, 9, replace=False)
    sizes, norms, m = rng.integers(0, 20, 20), rng.lognormal(sigma=2, size=20), 4
    norms[pool[:3]] = 0
    view, selector = view_of(sizes, m, norms), OptimalSampling()
    updates = rng.normal(size=20) * (norms > 0)
    order = rng.permutation(9)
    marks = sorted(1 - selector.inclusion_probabilities(pool, view)[order].cumsum().round(9) % 1)
    mean = 0.0
    for low, high in itertools.pairwise([0, *marks, 1]):
        if high - low > 1e-12:
            cohort = selector.select({}, pool, view, Scripted(order, (low + high) / 2))
            assert len(set(cohort)) == len(cohort) <= m
            weights = selector.weights({}, pool, cohort, view)
            mean += (high - low) * float(weights @ updates[cohort])
    assert mean == pytest.approx(float(sizes[pool] @ updates[pool] / sizes[pool].sum()))


@pytest.mark.parametrize(
    ("norms", "expected"),
    [([0, 0, 0, 0], [0.25, 0.75, 0, 1]), ([math.nan, 1, 1, math.inf], [1, 0, 0, 1])],
)
def test_sizes_decide_if_no_update_moves_or_some_diverge(norms: list, expected: list):
    view = view_of(np.array([1, 3, 0, 4]), 2, np.array(norms))
    chances = OptimalSampling().inclusion_probabilities(np.arange(4), view)
    np.testing.assert_allclose(chances, expected)
