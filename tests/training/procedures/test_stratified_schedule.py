"""Stratify's label schedule, against the properties that the paper's algorithms promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.training.procedures.stratified.choice import Choice, longest_runs
from cohort.training.procedures.stratified.schedule import (
    ClientData,
    Epoch,
    batches,
    frequencies,
    single_samples,
)


def client_data(labels: np.ndarray, holders: np.ndarray, clients: int) -> ClientData:
    """Each sample's label and client."""
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
    """Labels with 6, 2, 0 and 4 samples: the median of those that occur is 4, their mean 4."""
    counts = np.array([[5, 1], [0, 2], [0, 0], [4, 0]])
    assert frequencies(counts).tolist() == [4, 2, 0, 4]
    assert frequencies(counts, uniform=True).tolist() == [4, 4, 0, 4]
    covtype = np.array([[211_840, 0], [0, 283_301]])
    assert frequencies(covtype).tolist() == [211_840, 247_570]
    assert frequencies(np.full((3, 2), 7)).tolist() == [14, 14, 14]


@st.composite
def epochs(draw: st.DrawFn) -> tuple[ClientData, dict[str, bool], Epoch]:
    data = random_data(draw(st.integers(0, 10**6)), draw(st.integers(1, 6)), 4, 60)
    options = {"weighted": draw(st.booleans()), "uniform": draw(st.booleans())}
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    if draw(st.booleans()):
        return data, options, batches(data, rng, batch=draw(st.integers(1, 20)), **options)
    chunk, retained = draw(st.integers(1, 20)), draw(st.floats(0.1, 1))
    return data, options, single_samples(data, rng, chunk=chunk, retained=retained, **options)


@given(epochs())
@settings(max_examples=150, deadline=None)
def test_an_epoch(drawn: tuple[ClientData, dict[str, bool], Epoch]):
    """Each label occurs as often as scheduled, each sample is its client's own, and none is used
    twice before all of its label were."""
    data, options, epoch = drawn
    scheduled = frequencies(data.counts, options["uniform"])
    labels = data.labels[epoch.samples]
    assert np.bincount(labels, minlength=len(scheduled)).tolist() == scheduled.tolist()
    for sample, client in zip(epoch.samples, epoch.clients, strict=True):
        assert sample in data.samples[client]
    uses = np.bincount(epoch.samples, minlength=len(data.labels))
    for label in np.flatnonzero(scheduled):
        assert np.ptp(uses[data.labels == label]) <= 1


def test_every_sample_is_used_once_where_labels_are_balanced():
    """With as many samples of each label, an epoch is one pass over all data."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 40)
    data = client_data(labels, rng.integers(0, 7, 200), 7)
    for epoch in (
        single_samples(data, rng, chunk=5, retained=0.3),
        batches(data, rng, batch=32, weighted=True),
    ):
        assert np.sort(epoch.samples).tolist() == list(range(200))


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
    place = 0
    for client, start, end in longest_runs(able, np.random.default_rng(seed)):
        longest, best = longest_by_brute_force(able, place)
        assert start == place and end == place + longest and client in best
        place = end
    assert place == len(able)


@pytest.mark.parametrize(("weighted", "shares"), [(False, [1, 1, 1]), (True, [6, 3, 1])])
def test_who_is_asked(weighted: bool, shares: list[int]):
    """Three holders of 60, 30 and 10 samples: the first choice is uniform, or in proportion."""
    choice = Choice(np.array([[60, 30, 10, 0]]), weighted, np.random.default_rng(0))
    first = [choice.clients(0, 2)[0] for _ in range(6000)]
    expected = np.array(shares) / sum(shares) * 6000
    found = np.bincount(first, minlength=4)
    assert found[3] == 0
    assert ((found[:3] - expected) ** 2 / expected).sum() < 13.8  # chi-square at 0.001


def test_more_labels_than_holders():
    """Two holders are asked five times for one label, and nobody else."""
    choice = Choice(np.array([[3, 0, 2]]), False, np.random.default_rng(0))
    asked = choice.clients(0, 5)
    assert len(asked) == 5 and set(asked) <= {0, 2}
    assert sorted(choice.clients(0, 2)) == [0, 2]
