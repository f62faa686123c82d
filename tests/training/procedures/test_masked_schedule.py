"""Stratify's schedule, made by a server that knows labels by their placeholders only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cohort.privacy.masked_labels import Exchange
from cohort.training.procedures.label_schedule import (
    ClientData,
    Epoch,
    label_frequencies,
    schedule_batches,
    schedule_single_samples,
)
from tests.privacy.test_masked_labels import played
from tests.training.procedures.test_stratified_schedule import random_data

pytest.importorskip("tenseal")


def known_to_the_server(exchange: Exchange) -> np.ndarray:
    """Some counts, a row for each placeholder and a column for each client, that agree with all the
    server knows: who holds a placeholder, and how many samples all holders have together."""
    counts = np.zeros((len(exchange.counts), len(exchange.clients)), np.int64)
    for index, client in enumerate(exchange.clients):
        counts[list(client.placeholders.values()), index] = 1
    for placeholder, total in exchange.counts.items():
        holders = np.flatnonzero(counts[placeholder])
        counts[placeholder, holders[0]] = total - len(holders) + 1
    return counts


def placeholders_of(exchange: Exchange, classes: int) -> np.ndarray:
    """The placeholder of each label, from what clients learned."""
    names = np.full(classes, -1)
    for client in exchange.clients:
        for label, placeholder in client.placeholders.items():
            names[label] = placeholder
    return names


def epochs(data: ClientData) -> list[Epoch]:
    """An epoch of each mode, always from the same random numbers."""
    return [
        schedule_single_samples(data, np.random.default_rng(1), chunk=5, retained=0.3),
        schedule_batches(data, np.random.default_rng(1), batch=16),
    ]


def test_the_schedule_is_the_one_that_is_made_in_the_clear():
    """Up to the names of labels: five clients with unequal shares of four labels. The server's
    totals and holders, and clients that find their samples by placeholder, give each sample the
    place that it has if everybody sees all counts of labels renamed alike."""
    data = random_data(seed=3, clients=5, classes=4, size=120)
    exchange = played(data.counts.T.tolist())
    names, counts = placeholders_of(exchange, 4), known_to_the_server(exchange)
    assert (counts > 0).tolist() == (data.counts[np.argsort(names)] > 0).tolist()
    assert label_frequencies(counts)[names].tolist() == label_frequencies(data.counts).tolist()
    renamed = replace(data, labels=names[data.labels], counts=data.counts[np.argsort(names)])
    assert not np.array_equal(counts, renamed.counts)  # the server knows less than everything
    masked = replace(renamed, counts=counts)
    for epoch, clear in zip(epochs(masked), epochs(renamed), strict=True):
        assert epoch.samples.tolist() == clear.samples.tolist()
        assert epoch.clients.tolist() == clear.clients.tolist()
        assert epoch.tasks.tolist() == clear.tasks.tolist()
        scheduled = np.bincount(data.labels[epoch.samples], minlength=4)
        assert scheduled.tolist() == label_frequencies(data.counts).tolist()
