"""Stratify's label schedule: an epoch as a balanced sequence of labels, and whose sample of each
label is trained at which position (Algorithms 1 to 4). Everything follows from the shards and one
generator, so an epoch that was interrupted is scheduled again as it was."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator


@dataclass(frozen=True)
class ClientData:
    """The samples of each client, their labels, and the counts held of each (label, client)."""

    samples: Sequence[np.ndarray]
    labels: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class Epoch:
    """The samples of an epoch in the order of training, and the client that holds each; `tasks` are
    the clients of the single-sample mode's tasks, in order."""

    samples: np.ndarray
    clients: np.ndarray
    tasks: np.ndarray

    @property
    def transfers(self) -> int:
        """The number of times that the model goes from one client to another."""
        return int(np.count_nonzero(np.diff(self.tasks)))

    def contributions(self, batch: int) -> int:
        """The number of clients that contribute to a batch, summed over batches of this size."""
        parts = np.split(self.clients, range(batch, len(self.clients), batch))
        return sum(len(np.unique(part)) for part in parts)


def label_frequencies(counts: np.ndarray) -> np.ndarray:
    """How often to schedule each label: its total in counts (label, client), the median at most."""
    totals = counts.sum(axis=1)
    return np.minimum(totals, np.median(totals[totals > 0])).astype(np.int64)


def _begin_epoch(data: ClientData, rng: Rng, weighted: bool) -> tuple["Holders", list[int]]:
    """The holders of samples, and an epoch's labels in random order."""
    frequencies = label_frequencies(data.counts)
    labels = rng.permutation(np.repeat(np.arange(len(frequencies)), frequencies))
    return Holders(data, weighted, rng), labels.tolist()


def schedule_single_samples(
    data: ClientData, rng: Rng, chunk: int, retained: float, weighted: bool = False
) -> Epoch:
    """Schedule an epoch of single samples (Algorithm 3) in chunks of labels. A client that has no
    sample left of a label skips it and says so. The label then waits at a random position in the
    rest of the schedule. Once nobody has any left, all begin anew with that label."""
    holders, waiting = _begin_epoch(data, rng, weighted)
    waiting.reverse()  # the next is last
    number = math.ceil(retained * len(data.samples) - 1e-9)  # 0.28 * 25 > 7 as a float
    samples, clients, tasks = [], [], []
    while waiting:
        labels = waiting[: -chunk - 1 : -1]
        del waiting[-chunk:]
        holders.refill(labels)
        for client, run in holders.chunk_tasks(labels, number):
            tasks.append(client)
            for label in run:
                sample = holders.draw(client, label)
                if sample is None:
                    waiting.insert(int(rng.integers(len(waiting) + 1)), label)
                else:
                    samples.append(sample)
                    clients.append(client)
    return Epoch(np.array(samples), np.array(clients), np.array(tasks))


def schedule_batches(data: ClientData, rng: Rng, batch: int, weighted: bool = False) -> Epoch:
    """Schedule an epoch of batches (Algorithm 4). For a label that a client has no sample left of,
    another client is chosen before the batch is trained."""
    holders, labels = _begin_epoch(data, rng, weighted)
    samples, clients = np.empty(len(labels), np.int64), np.empty(len(labels), np.int64)
    for start in range(0, len(labels), batch):
        positions = list(range(start, min(start + batch, len(labels))))
        while positions:
            wanted = Counter(labels[position] for position in positions)
            holders.refill(wanted)
            queues = {label: iter(holders.draw_clients(label, wanted[label])) for label in wanted}
            missing = []
            for position in positions:
                client = next(queues[labels[position]])
                sample = holders.draw(client, labels[position])
                if sample is None:
                    missing.append(position)
                else:
                    samples[position], clients[position] = sample, client
            positions = missing
    return Epoch(samples, clients, np.empty(0, np.int64))


class Holders:
    """The samples that clients have not used yet in an epoch, in random order, and the choice of a
    client for each scheduled label: uniformly among those that hold the label, or `weighted` by how
    many samples of it they hold, of which the server needs the counts then."""

    def __init__(self, data: ClientData, weighted: bool, rng: Rng):
        counts, self.rng = data.counts, rng
        self.unused = [self._by_label(shard, data) for shard in data.samples]
        self.used = [self._by_label(shard[:0], data) for shard in data.samples]
        self.weights = np.where(counts > 0, counts if weighted else 1.0, 0.0)
        self.available = self.weights.copy()

    def _by_label(self, shard: np.ndarray, data: ClientData) -> list[list[int]]:
        mixed = self.rng.permutation(shard)
        labels = data.labels[mixed]
        ends = np.bincount(labels, minlength=len(data.counts)).cumsum()
        parts = np.split(mixed[np.argsort(labels, kind="stable")], ends[:-1])
        return [part.tolist() for part in parts]

    def draw(self, client: int, label: int) -> int | None:
        """Draw a sample of this label that the client has not used yet; None if none is left, and
        then the client is not asked again for this label."""
        if not self.unused[client][label]:
            self.available[label, client] = 0
            return None
        sample = self.unused[client][label].pop()
        self.used[client][label].append(sample)
        return sample

    def refill(self, labels: Iterable[int]) -> None:
        """Put back and shuffle the used samples of each label that all clients have used up."""
        for label in set(labels):
            if not self.available[label].any():
                self.available[label] = self.weights[label]
                for unused, used in zip(self.unused, self.used, strict=True):
                    unused[label] = self.rng.permutation(unused[label] + used[label]).tolist()
                    used[label] = []

    def chunk_tasks(self, chunk: list[int], retained: int) -> Iterator[tuple[int, list[int]]]:
        """Assign a chunk of labels (Algorithm 1): yield one client after another with its
        consecutive labels. For each label a few available clients are `retained` at random."""
        labels = sorted(set(chunk))
        able = {}  # the retained clients of each label, as a bit mask
        for label, order in zip(labels, self._draw_orders(labels), strict=True):
            able[label] = sum(1 << client for client in order[:retained].tolist())
        for client, start, end in longest_runs([able[label] for label in chunk], self.rng):
            yield client, chunk[start:end]

    def draw_clients(self, label: int, number: int) -> list[int]:
        """Draw so many clients for one label (Algorithm 2), each once if there are enough."""
        available = self.available[label]
        (able,) = np.nonzero(available)
        if number > len(able):
            return self.rng.choice(able, number, p=available[able] / available[able].sum()).tolist()
        return self._draw_orders([label])[0][:number].tolist()

    def _draw_orders(self, labels: Sequence[int]) -> list[np.ndarray]:
        """Draw the order in which each label's available clients come up."""
        weights = self.available[labels]
        with np.errstate(divide="ignore"):
            arrivals = self.rng.standard_exponential(weights.shape) / weights
        order = arrivals.argsort(axis=1)
        return [row[:count] for row, count in zip(order, (weights > 0).sum(axis=1), strict=True)]


def longest_runs(able: Sequence[int], rng: Rng) -> Iterator[tuple[int, int, int]]:
    """Cut a chunk into tasks: a client, the first position of its run, and the one after the last.
    `able` says for each position which clients can serve it, as a bit mask. Each task
    goes to a client that can serve the most positions in a row; ties are broken at random."""
    start = 0
    while start < len(able):
        longest, end = able[start], start + 1
        while end < len(able) and longest & able[end]:
            longest &= able[end]
            end += 1
        tied = [client for client in range(longest.bit_length()) if longest >> client & 1]
        yield tied[int(rng.integers(len(tied)))] if len(tied) > 1 else tied[0], start, end
        start = end
