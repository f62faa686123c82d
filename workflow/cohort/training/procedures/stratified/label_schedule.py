"""Stratify's label schedule: an epoch as a balanced sequence of labels, and whose sample of each
label is trained at which place.

Everything follows from the shards and one generator, so an epoch that was interrupted is scheduled
again as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cohort.training.procedures.stratified.choice import Choice, retained_count
from cohort.training.procedures.stratified.pools import Pools


@dataclass(frozen=True)
class ClientData:
    """The samples of each client, their labels, and how many of each label (row) each client
    (column) holds."""

    samples: Sequence[np.ndarray]
    labels: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Epoch:
    """The samples of an epoch in the order of training, and the client that holds each.

    `tasks` are the clients of the single-sample mode's tasks, in order.
    """

    samples: np.ndarray
    clients: np.ndarray
    tasks: np.ndarray

    @property
    def transfers(self) -> int:
        """The number of times that the model goes from one client to another."""
        return int(np.count_nonzero(np.diff(self.tasks)))

    def contributor_counts(self, batch: int) -> np.ndarray:
        """The number of clients that contribute to each batch, for batches of this size."""
        parts = np.split(self.clients, range(batch, len(self.clients), batch))
        return np.array([len(np.unique(part)) for part in parts])

    def sharer_counts(self, batch: int) -> np.ndarray:
        """The number of clients that share sums for batch normalization in each batch: none in a
        batch of one sample, which has no variance."""
        sizes = np.minimum(batch, len(self.clients) - np.arange(0, len(self.clients), batch))
        return np.where(sizes > 1, self.contributor_counts(batch), 0)


def label_frequencies(counts: np.ndarray, uniform: bool = False) -> np.ndarray:
    """The number of times that each label is scheduled in an epoch: as often as it has samples, but
    no label more often than the median one; or all equally often.

    `counts` has a row for each label and a column for each client.
    """
    held = counts.sum(axis=1)
    present = held > 0
    most = held[present].mean() if uniform else np.median(held[present])
    return np.where(present, most if uniform else np.minimum(held, most), 0).astype(np.int64)


def shuffled_labels(frequency: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Labels in random order, each as often as its frequency says."""
    return [
        int(label) for label in rng.permutation(np.repeat(np.arange(len(frequency)), frequency))
    ]


def schedule_single_samples(
    data: ClientData,
    rng: np.random.Generator,
    *,
    chunk: int,
    retained: float,
    weighted: bool = False,
    uniform: bool = False,
) -> Epoch:
    """Schedule an epoch of single samples (Algorithm 3) in chunks of labels.

    A client that has no sample left of a label skips it and says so. The label then waits at a
    random place of what is left of the schedule, for somebody else. Once nobody has any left, all
    begin anew with that label.
    """
    waiting = shuffled_labels(label_frequencies(data.counts, uniform), rng)[
        ::-1
    ]  # the next is last
    pools = Pools(data.samples, data.labels, data.counts, rng)
    choice = Choice(data.counts, weighted, rng)
    number = retained_count(retained, len(data.samples))
    samples, clients, tasks = [], [], []
    while waiting:
        labels = waiting[: -chunk - 1 : -1]
        del waiting[-chunk:]
        _refill(labels, pools, choice)
        for client, run in choice.chunk_tasks(labels, number):
            tasks.append(client)
            drawn = [pools.draw(client, label) for label in run]
            samples += [sample for sample in drawn if sample is not None]
            clients += [client for sample in drawn if sample is not None]
            for label, sample in zip(run, drawn, strict=True):
                if sample is None:
                    choice.remove(client, label)
                    waiting.insert(int(rng.integers(len(waiting) + 1)), label)
    return Epoch(np.array(samples), np.array(clients), np.array(tasks))


def schedule_batches(
    data: ClientData,
    rng: np.random.Generator,
    *,
    batch: int,
    weighted: bool = False,
    uniform: bool = False,
) -> Epoch:
    """Schedule an epoch of batches (Algorithm 4). For a label that a client has no sample left of,
    another client is chosen before the batch is trained."""
    labels = shuffled_labels(label_frequencies(data.counts, uniform), rng)
    pools = Pools(data.samples, data.labels, data.counts, rng)
    choice = Choice(data.counts, weighted, rng)
    samples = np.empty(len(labels), np.int64)
    clients = np.empty(len(labels), np.int64)
    for start in range(0, len(labels), batch):
        positions: Sequence[int] = range(start, min(start + batch, len(labels)))
        while positions:
            positions = _draw_batch(positions, labels, pools, choice, samples, clients)
    return Epoch(samples, clients, np.empty(0, np.int64))


def _draw_batch(
    positions: Sequence[int],
    labels: Sequence[int],
    pools: Pools,
    choice: Choice,
    samples: np.ndarray,
    clients: np.ndarray,
) -> Sequence[int]:
    """Draw samples of the clients asked for these places into `samples` and `clients`; return the
    places for which another client has to be asked."""
    wanted = Counter(labels[position] for position in positions)
    _refill(wanted, pools, choice)
    chosen = {label: iter(choice.draw_clients(label, number)) for label, number in wanted.items()}
    missing = []
    for position in positions:
        client = next(chosen[labels[position]])
        sample = pools.draw(client, labels[position])
        if sample is None:
            choice.remove(client, labels[position])
            missing.append(position)
        else:
            samples[position], clients[position] = sample, client
    return missing


def _refill(labels: Sequence[int] | Counter[int], pools: Pools, choice: Choice) -> None:
    """Make all samples of the labels available again that nobody has any sample left of."""
    for label in set(labels):
        if not choice.has_client_for(label):
            pools.refill(label)
            choice.restore(label)
