"""Selectors that balance labels: Seol and Kim's, FedEntropy's, Fed-CBS and diversity."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon
from scipy.stats import chisquare, entropy

from cohort.selection.entropy import KL, PERFECT, FedCbs, Reselect, imbalance
from cohort.selection.updates import Diversity
from tests.selection.views import labeled


def select(
    counts: np.ndarray, cohort: int, theta: float = 0.01
) -> tuple[list[int], list[list[int]]]:
    selector, view = KL(theta=theta), labeled(counts, cohort)
    chosen = selector.select({}, np.arange(len(counts)), view, np.random.default_rng(0))
    return chosen.tolist(), selector.quotas(chosen, view).tolist()


BY_HAND = np.array([[4, 0, 5], [10, 2, 0], [0, 9, 0], [1, 1, 1]])


def test_by_hand():
    """Client 1 (12 samples) uses all: [10, 2, 0]. So class 2 is the rarest, and at most 10 of each
    are used. Client 0 (9 samples, like client 2, but a lower number) adds its 5 of class 2 and none
    of class 0: [10, 2, 5]. Now class 1 is the rarest, and 8 of client 2's 9 fit: [10, 10, 5].
    Client 3 adds its one of class 2 and none of the others: [10, 10, 6]."""
    assert select(BY_HAND, 4) == ([1, 0, 2, 3], [[10, 2, 0], [0, 0, 5], [0, 8, 0], [0, 0, 1]])
    assert select(BY_HAND, 2) == ([1, 0], [[10, 2, 0], [0, 0, 5]])


def test_it_ends_when_the_labels_are_even_enough():
    """[10, 10, 5] has a divergence of 0.044 nats."""
    divergence = stats.entropy([10, 10, 5], np.ones(3))
    assert divergence == pytest.approx(0.0437, abs=1e-4)
    assert select(BY_HAND, 4, theta=divergence * 1.01)[0] == [1, 0, 2]
    assert select(BY_HAND, 4, theta=divergence * 0.99)[0] == [1, 0, 2, 3]


def test_a_second_pass_takes_whom_the_first_one_passed_over():
    """Client 1 has only class 1, but class 2 is the rarest; after client 2 has added that, class 1 is the rarest."""
    counts = np.array([[9, 1, 0], [0, 8, 0], [0, 0, 7]])
    assert select(counts, 3) == ([0, 2, 1], [[9, 1, 0], [0, 0, 7], [0, 8, 0]])


def test_it_ends_where_nobody_helps():
    assert select(np.array([[9, 0], [5, 0], [4, 0]]), 3) == ([0], [[9, 0]])


def test_the_same_in_every_round_and_never_more_than_is_held():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shape = rng.integers(3, 20), rng.integers(2, 6)
        counts = rng.integers(0, 40, shape) * (rng.random(shape) < 0.5)
        cohort = int(rng.integers(1, len(counts) + 1))
        chosen, quotas = select(counts, cohort)
        assert (chosen, quotas) == select(counts, cohort)
        assert len(set(chosen)) == len(chosen) <= cohort
        assert (np.array(quotas) >= 0).all() and (np.array(quotas) <= counts[chosen]).all()
        assert np.array(quotas).sum(axis=0).max() <= counts[chosen[0]].max()
        assert quotas[0] == counts[chosen[0]].tolist()


def greedy(soft: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Leave out clients one by one while the entropy grows, computed by scipy."""

    def bits(group: list[int]) -> float:
        return float(stats.entropy(np.average(soft[group], axis=0, weights=sizes[group]), base=2))

    clients = list(range(len(sizes)))
    while len(clients) > 1:
        best, gone = max(
            (bits([other for other in clients if other != client]), -client) for client in clients
        )
        if best <= bits(clients) + 1e-12:
            break
        clients.remove(-gone)
    return clients


def test_against_scipy():
    counts = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        soft, sizes = rng.dirichlet(np.full(5, 0.3), 8), rng.integers(1, 50, 8)
        mask = Reselect().keep({"soft_labels": soft}, sizes)
        assert np.flatnonzero(mask).tolist() == greedy(soft, sizes)
        counts.append(mask.sum())
    assert min(counts) < 6 and max(counts) == 8


def test_a_client_without_samples_does_not_hinder_the_judgment():
    soft = np.array([[0.9, 0.1], [np.nan, np.nan], [0.1, 0.9], [1.0, 0.0]])
    mask = Reselect().keep({"soft_labels": soft}, np.array([5, 0, 5, 5]))
    assert mask.tolist() == [True, True, True, False]


FIVE_CLIENTS = np.array([[6, 0, 0], [0, 5, 1], [2, 2, 2], [0, 0, 9], [1, 4, 0]])


def qcid(members: list[int], counts: np.ndarray) -> float:
    """The imbalance of a group of clients, by the products of their label shares."""
    total = float(counts[members].sum())
    products = sum(float(counts[n] @ counts[m]) for n in members for m in members)
    return products / total**2 - 1 / counts.shape[1]


def literal(counts: np.ndarray, cohort: int, round: int, chosen: list[int], strength: float, rng):
    """The paper's draws of a cohort, one client after another."""
    members: list[int] = []
    for m in range(1, cohort + 1):
        rest = [client for client in range(len(counts)) if client not in members]
        weights = []
        for client in rest:
            weight = (qcid([*members, client], counts) + PERFECT) ** -m
            if m == 1:
                weight += strength * math.sqrt(3 * math.log(round) / (2 * chosen[client]))
            weights.append(math.log(weight))
        noise = rng.gumbel(size=len(rest))
        best = max(range(len(rest)), key=lambda index: weights[index] + noise[index])
        members.append(rest[best])
    return members


def test_imbalance_by_hand():
    """Shares of 1, 0, 0 differ by 4/9 + 1/9 + 1/9; equal ones by nothing; none as the worst."""
    counts = np.array([[6.0, 0, 0], [2, 2, 2], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(imbalance(counts), [6 / 9, 0, 1 / 6, 6 / 9], atol=1e-15)
    for client in range(5):
        expected = pytest.approx(qcid([client], FIVE_CLIENTS))
        assert imbalance(FIVE_CLIENTS[[client]].astype(float))[0] == expected


@pytest.mark.parametrize("strength", [0, 10])
def test_it_is_the_papers_sampling(strength: float):
    """It chooses the cohorts of `literal`, in 100 rounds of random label counts."""
    data = np.random.default_rng(0)
    for trial in range(5):
        counts = data.integers(0, 9, size=(8, 4)) + np.eye(8, 4, dtype=int)
        selector, chosen = FedCbs(exploration=strength), [1] * 8
        state = selector.begin(labeled(counts, 3), data)
        for round in range(1, 21):
            draws = np.random.default_rng([trial, round]), np.random.default_rng([trial, round])
            cohort = selector.select(state, np.arange(8), labeled(counts, 3), draws[0])
            assert cohort.tolist() == literal(counts, 3, round, chosen, strength, draws[1])
            for client in cohort:
                chosen[client] += 1
            state = selector.observe(state, cohort, {}, labeled(counts, 3))


COUNTS = np.array(
    [[10, 0, 0, 0], [5, 5, 0, 0], [1, 2, 3, 4], [0, 0, 9, 1], [4, 4, 4, 4], [0, 0, 0, 7]]
)
RANDOM = np.random.default_rng(3).integers(0, 9, (40, 15)) * (
    np.random.default_rng(4).random((40, 15)) < 0.4
) + np.eye(40, 15, dtype=int)


def own_by_scipy(counts: np.ndarray, mix: float) -> np.ndarray:
    classes = counts.shape[1]
    bits = np.array([entropy(row) for row in counts]) / np.log(classes)
    return mix * np.count_nonzero(counts, axis=1) / classes + (1 - mix) * bits


def as_run(counts: np.ndarray, mix: float, alpha: float) -> np.ndarray:
    """Client by client, pair by pair: the mean distance to all clients over the largest mean."""
    apart = [np.mean([jensenshannon(row, other) for other in counts]) for row in counts]
    return alpha * own_by_scipy(counts, mix) + (1 - alpha) * np.array(apart) / max(apart)


def as_written(counts: np.ndarray, mix: float, alpha: float) -> np.ndarray:
    """Client by client, pair by pair: the mean divergence to all other clients."""
    apart = [
        np.mean([jensenshannon(counts[i], counts[j]) ** 2 for j in range(len(counts)) if j != i])
        for i in range(len(counts))
    ]
    return alpha * own_by_scipy(counts, mix) + (1 - alpha) * np.array(apart)


@pytest.mark.parametrize("counts", [COUNTS, RANDOM])
@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("mix", [0.0, 0.5, 0.9])
def test_scores_are_those_of_scipy(counts: np.ndarray, alpha: float, mix: float):
    for measure, expected in (("distance", as_run), ("divergence", as_written)):
        actual = Diversity(alpha=alpha, mix=mix, measure=measure).scores(counts)
        np.testing.assert_allclose(actual, expected(counts, mix, alpha), rtol=1e-9)


def test_clients_that_are_all_alike_have_no_distance():
    """The authors' code would divide 0 by 0. Evenly holding 3 of 4 classes scores 0.5 * 3/4 + 0.5 * ln 3 / ln 4."""
    counts = np.array([[1, 1, 1, 0], [7, 7, 7, 0], [3, 3, 3, 0]])
    np.testing.assert_allclose(Diversity(alpha=0.0).scores(counts), [0, 0, 0])
    expected = 0.4 * (0.375 + 0.5 * np.log(3) / np.log(4))
    np.testing.assert_allclose(Diversity(alpha=0.4).scores(counts), [expected] * 3)


def test_chosen_as_often_as_the_scores_say():
    """Cohorts of one: probabilities are proportional to the min-max scaled scores plus 0.01."""
    selector, counts = Diversity(alpha=0.5), np.zeros(6)
    state = selector.begin(labeled(COUNTS, 1), np.random.default_rng(0))
    for seed in range(20_000):
        rng = np.random.default_rng(seed)
        counts[selector.select(state, np.arange(6), labeled(COUNTS, 1), rng)] += 1
    scores = as_run(COUNTS, 0.5, 0.5)
    weights = (scores - scores.min()) / (scores.max() - scores.min()) + 0.01
    assert chisquare(counts, weights / weights.sum() * 20_000).pvalue > 1e-3
    assert chisquare(counts).pvalue < 1e-6  # evenly it is not
