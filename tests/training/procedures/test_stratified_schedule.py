"""Stratify's label schedule, against the properties that the paper's algorithms promise."""

from collections import Counter
from dataclasses import astuple, replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.training.procedures.label_schedule import (
    ClientData,
    Epoch,
    Holders,
    label_frequencies,
    longest_runs,
    schedule_batches,
    schedule_single_samples,
)


def client_data(labels: np.ndarray, holders: np.ndarray, clients: int) -> ClientData:
    """Make ClientData from each sample's label and client."""
    samples = [np.flatnonzero(holders == client) for client in range(clients)]
    classes = int(labels.max()) + 1
    counts = [np.bincount(labels[own], minlength=classes) for own in samples]
    return ClientData(samples, labels, np.stack(counts, axis=1))


def random_data(seed: int, clients: int, classes: int, size: int) -> ClientData:
    """Unequal clients and labels, some of them without any sample of a label."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, size, p=rng.dirichlet(np.full(classes, 2.0)))
    labels[0] = classes - 1
    shares = rng.dirichlet(np.full(clients, 0.4), classes)
    holders = np.array([rng.choice(clients, p=shares[label]) for label in labels])
    return client_data(labels, holders, clients)


def test_frequencies_by_hand():
    """Labels with 9, 2, 0 and 4 samples: the median of those that occur is 4."""
    counts = np.array([[5, 4], [0, 2], [0, 0], [4, 0]])
    assert label_frequencies(counts).tolist() == [4, 2, 0, 4]
    covtype = np.array([[211_840, 0], [0, 283_301]])
    assert label_frequencies(covtype).tolist() == [211_840, 247_570]
    assert label_frequencies(np.full((3, 2), 7)).tolist() == [14, 14, 14]


@st.composite
def epochs(draw: st.DrawFn) -> tuple[ClientData, Epoch]:
    data = random_data(draw(st.integers(0, 10**6)), draw(st.integers(1, 6)), 4, 60)
    args = data, np.random.default_rng(draw(st.integers(0, 10**6)))
    weighted = draw(st.booleans())
    if draw(st.booleans()):
        return data, schedule_batches(*args, batch=draw(st.integers(1, 20)), weighted=weighted)
    chunks = {"chunk": draw(st.integers(1, 20)), "retained": draw(st.floats(0.1, 1))}
    return data, schedule_single_samples(*args, **chunks, weighted=weighted)


@given(epochs())
@settings(max_examples=150, deadline=None)
def test_an_epoch(drawn: tuple[ClientData, Epoch]):
    """Each label occurs as often as scheduled, each sample is its client's own, and none is used
    twice before all of its label were."""
    data, epoch = drawn
    scheduled = label_frequencies(data.counts)
    labels = data.labels[epoch.samples]
    assert np.bincount(labels, minlength=len(scheduled)).tolist() == scheduled.tolist()
    for sample, client in zip(epoch.samples, epoch.clients, strict=True):
        assert sample in data.samples[client]
    uses = np.bincount(epoch.samples, minlength=len(data.labels))
    for label in np.flatnonzero(scheduled):
        assert np.ptp(uses[data.labels == label]) <= 1


def test_a_server_that_sees_masked_labels_makes_the_same_schedule():
    """It knows who holds a label, and how many samples all holders have together, by placeholders:
    each sample has the place that it has if everybody sees all counts of labels renamed alike."""
    data = random_data(seed=3, clients=5, classes=4, size=120)
    names = np.array([2, 0, 3, 1])  # the placeholder of each label
    clear = ClientData(data.samples, names[data.labels], data.counts[np.argsort(names)])
    counts = (clear.counts > 0).astype(np.int64)
    counts[np.arange(4), counts.argmax(axis=1)] += clear.counts.sum(axis=1) - counts.sum(axis=1)
    masked = replace(clear, counts=counts)
    assert not np.array_equal(counts, clear.counts)
    for schedule in (
        partial(schedule_single_samples, chunk=5, retained=0.3),
        partial(schedule_batches, batch=16),
    ):
        epochs = [schedule(data, np.random.default_rng(1)) for data in (masked, clear)]
        assert all(np.array_equal(*pair) for pair in zip(*map(astuple, epochs), strict=True))


def longest_by_brute_force(able: list[int], start: int) -> tuple[int, set[int]]:
    """The longest run from a place on, and the clients that can serve all of it."""
    runs = {}
    for client in range(8):
        run = 0
        while start + run < len(able) and able[start + run] >> client & 1:
            run += 1
        runs[client] = run
    longest = max(runs.values())
    return longest, {client for client, run in runs.items() if run == longest}


@given(st.lists(st.integers(1, 255), min_size=1, max_size=12), st.integers(0, 99))
def test_runs_against_brute_force(able: list[int], seed: int):
    """Each task goes to one of the clients with the longest run, and ends where that run ends."""
    begin = 0
    for client, start, end in longest_runs(able, np.random.default_rng(seed)):
        longest, best = longest_by_brute_force(able, begin)
        assert start == begin and end == begin + longest and client in best
        begin = end
    assert begin == len(able)


def chi_square(observed: Counter[Any], expected: dict[Any, float]) -> float:
    """Pearson's statistic; infinite if something was observed that is impossible."""
    if set(observed) - set(expected):
        return np.inf
    return sum((observed[key] - count) ** 2 / count for key, count in expected.items())


@pytest.mark.parametrize(
    ("able", "tied"), [([0b10110], [1, 2, 4]), ([0b11011, 0b00011, 0b10011], [0, 1])]
)
def test_a_tie_goes_to_each_client_equally_often(able: list[int], tied: list[int]):
    """The clients that can serve the longest run of labels: one label or three."""
    rng, counts = np.random.default_rng(3), Counter()
    for _ in range(3000):
        ((client, *_),) = longest_runs(able, rng)
        counts[client] += 1
    assert chi_square(counts, {client: 3000 / len(tied) for client in tied}) < 13.8  # 0.001


def orders_by_hand() -> dict[tuple[int, ...], float]:
    """Probabilities of each training order, worked out by hand. Two clients hold one sample of
    label 0 each and a third holds label 1. In half of the cases the second label 0 first asks a
    client that has run out, and then moves to any later position."""
    chances: Counter[tuple[int, ...]] = Counter()
    for labels in permutations([0, 0, 1, 1, 1]):
        second = labels.index(0, labels.index(0) + 1)
        rest = labels[second + 1 :]
        chances[labels] += Fraction(1, 2 * 120)
        for index in range(len(rest) + 1):
            order = (*labels[:second], *rest[:index], 0, *rest[index:])
            chances[order] += Fraction(1, 2 * 120 * (len(rest) + 1))
    assert sum(chances.values()) == 1
    return {order: float(chance) for order, chance in chances.items()}


def test_a_refused_label_waits_at_a_random_place():
    """Against all orders enumerated by hand."""
    labels, holders = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 2, 2, 2, 2])
    data, orders, runs = client_data(labels, holders, 3), Counter(), 4000
    for seed in range(runs):
        epoch = schedule_single_samples(data, np.random.default_rng(seed), chunk=1, retained=1.0)
        orders[tuple(labels[epoch.samples].tolist())] += 1
    expected = {order: runs * chance for order, chance in orders_by_hand().items()}
    assert len(expected) == 10 and chi_square(orders, expected) < 27.9  # at 0.001, of 9


def test_retained_clients_are_the_exact_share_rounded_up(monkeypatch: pytest.MonkeyPatch):
    """Seven of 25 are 0.28 of them, and 55 of a hundred 0.55."""
    numbers: list[int] = []
    record = lambda holders, labels, number: numbers.append(number) or []  # noqa: E731
    monkeypatch.setattr(Holders, "chunk_tasks", record)
    for share, clients in ((0.28, 25), (0.55, 100), (0.3, 5)):
        data = client_data(np.zeros(clients, int), np.arange(clients), clients)
        schedule_single_samples(data, np.random.default_rng(0), clients, share)
    assert numbers == [7, 55, 2]


def holders_of(counts: list[int], weighted: bool = False) -> Holders:
    """Clients with so many samples of the only label."""
    owners = np.repeat(np.arange(len(counts)), counts)
    data = client_data(np.zeros(sum(counts), np.int64), owners, len(counts))
    return Holders(data, weighted, np.random.default_rng(0))


@pytest.mark.parametrize(("weighted", "shares"), [(False, [1, 1, 1]), (True, [6, 3, 1])])
def test_who_is_asked(weighted: bool, shares: list[int]):
    """Three holders of 60, 30 and 10 samples: the first choice is uniform, or in proportion."""
    holders = holders_of([60, 30, 10, 0], weighted)
    counts = Counter(holders.draw_clients(0, 2)[0] for _ in range(6000))
    expected = {client: share / sum(shares) * 6000 for client, share in enumerate(shares)}
    assert chi_square(counts, expected) < 13.8  # at 0.001
