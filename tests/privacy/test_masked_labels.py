"""The protocol of masked labels: exact counts, what it costs, and what becomes of lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.partition.schemes import draw_holders
from cohort.privacy import ckks
from cohort.privacy.ckks import ProtocolError, new_key
from cohort.privacy.masked_labels import Client, Exchange, Pair, Server

FOUR = [[3, 5, 0, 0], [0, 2, 7, 0], [0, 0, 1, 4], [1, 0, 0, 9]]
TOTALS = [4, 7, 8, 13]


class Post:
    """Counts messages and bytes by content and direction."""

    def __init__(self) -> None:
        self.bytes, self.messages = Counter(), Counter()

    def __call__(self, what: str, size: int, *, to: str, copies: int = 1) -> None:
        self.bytes[what, to] += size * copies
        self.messages[what, to] += copies


def begun(counts: Sequence[Sequence[int]], post: Post | None = None) -> Exchange:
    return Exchange.begin(counts, len(counts[0]), post or Post())


def played(exchange: Exchange) -> Exchange:
    for step in (exchange.encrypt, exchange.list_labels, exchange.map_labels, exchange.count):
        step()
    return exchange


def recovered(exchange: Exchange) -> dict[int, set[int]]:
    """The decrypted counts that clients find for each label: one, if they agree."""
    results: dict[int, set[int]] = {}
    for client in exchange.clients:
        for label, placeholder in client.placeholders.items():
            results.setdefault(label, set()).add(exchange.counts[placeholder])
    return results


def covering(classes: int, clients: int, labels_of_each: int) -> np.ndarray:
    """Random counts of clients that hold so many classes each, and all of them together."""
    rng = np.random.default_rng(0)
    counts = np.zeros((clients, classes), dtype=np.int64)
    for label, held in enumerate(
        draw_holders(classes, clients, labels_of_each, -(-classes // clients), rng)
    ):
        counts[held, label] = rng.integers(1, 5000, len(held))
    return counts


def comparisons(counts: np.ndarray) -> int:
    """Every label of a client with every label listed before it, until all are listed; then every
    label with all of the list."""
    held, listed, count = [set(np.flatnonzero(row)) for row in counts], set(), 0
    for labels in held:
        if len(listed) < counts.shape[1]:
            count += len(labels) * len(listed)
            listed |= labels
    return count + sum(map(len, held)) * len(listed)


def test_by_hand():
    """The first client lists two labels. The second compares 2 x 2 and adds one, the third 2 x 3
    and adds the last, so the fourth is not asked. Then eight labels are compared with four."""
    post = Post()
    exchange = played(begun(FOUR, post))
    assert recovered(exchange) == {label: {total} for label, total in enumerate(TOTALS)}
    assert sorted(exchange.counts) == [0, 1, 2, 3]  # the placeholders
    assert exchange.comparisons == comparisons(np.array(FOUR)) == 2 * 2 + 2 * 3 + 8 * 4
    assert post.messages == {
        ("keys", "client"): 3,
        ("keys", "server"): 1,
        ("labels", "server"): 8,
        ("counts", "server"): 8,
        ("differences", "clients"): 42,
        ("answers", "server"): 2 + 2 + 2 + 8,  # also the first client's, who sees no list yet
        ("placeholders", "clients"): 8,
        ("sums", "clients"): 4,
        ("sums", "server"): 4,
    }
    assert post.bytes["placeholders", "clients"] == 8 * 4
    assert post.bytes["answers", "server"] == 6 * 1 + 8 * 4
    ciphertexts = post.bytes["labels", "server"] / 8
    assert post.bytes["differences", "clients"] / 42 == pytest.approx(ciphertexts, rel=0.01)


def test_ten_classes_and_five_clients():
    counts = covering(10, 5, 5)
    exchange = played(begun(counts.tolist()))
    assert recovered(exchange) == {label: {n} for label, n in enumerate(counts.sum(axis=0))}
    assert exchange.comparisons == comparisons(counts)


def test_forty_classes_and_ten_clients(monkeypatch: pytest.MonkeyPatch):
    """With ciphertexts of a sixth of the size, or it would take long."""
    monkeypatch.setattr(ckks, "DEGREE", 4096)
    monkeypatch.setattr(ckks, "MODULUS_BITS", [50, 50])
    monkeypatch.setattr(ckks, "SCALE", 2.0**30)
    counts = covering(40, 10, 6)
    exchange = played(begun(counts.tolist()))
    assert recovered(exchange) == {label: {n} for label, n in enumerate(counts.sum(axis=0))}
    assert exchange.comparisons == comparisons(counts)


@pytest.mark.parametrize(
    "counts",
    [
        [[4]],
        [[0, 0], [3, 1]],  # the first client has nothing
        [[0, 2], [0, 5]],  # nobody holds a class: the list stays incomplete
    ],
)
def test_corner_cases(counts: list[list[int]]):
    totals = enumerate(np.array(counts).sum(axis=0))
    assert recovered(played(begun(counts))) == {label: {n} for label, n in totals if n}


def test_the_order_of_labels_and_the_placeholders_are_random():
    """Of 20 labels in order, or the same order twice, a run sees one in 10^18."""
    key = new_key()
    sent = [list(Client(key, [1] * 20)._labels) for _ in range(2)]
    assert sent[0] != sent[1] != sorted(sent[1])
    masks = []
    for _ in range(2):
        server = Server(Client(key, [1]).public_key(), 20)
        server._unique = [None] * 20
        server.draw_placeholders()
        masks.append(server._masks)
    assert masks[0] != masks[1] != sorted(masks[1])


def test_a_client_with_another_key_is_noticed():
    for index in (0, 2):
        exchange = begun(FOUR)
        clients = list(exchange.clients)
        clients[index] = Client(new_key(), FOUR[index])
        exchange.clients = clients
        with pytest.raises(ProtocolError, match="encrypted with another key"):
            played(exchange)


class AllNew(Client):
    """Says that it has never seen a label."""

    def is_new(self, differences: Sequence[bytes]) -> bool:
        return True


class Inventing(Client):
    """Sends a label that does not exist instead of one that it holds."""

    held, sent = 1, 77.0

    def pairs(self) -> list[Pair]:
        result = super().pairs()
        position = self._labels.index(self.held)
        result[position] = replace(result[position], label=self._key.encrypt(self.sent))
        return result


class InventingAnother(Inventing):
    held = 2


class Between(Inventing):
    sent = 1.5


class Lazy(Client):
    """Gives the same place for all its labels."""

    def position(self, differences: Sequence[bytes]) -> int:
        return 0


class Outside(Client):
    """Gives places that the list does not have."""

    def position(self, differences: Sequence[bytes]) -> int:
        return super().position(differences) + 100


@pytest.mark.parametrize(
    ("liar", "sentence"),
    [
        (AllNew, "a client finds its label"),
        (Inventing, "a client finds its label 0 times"),
        (InventingAnother, "clients have 5 different labels, but there are only 4 classes"),
        (Between, "somebody encrypted something else"),
        (Lazy, "a client with 2 labels answers with 1 different places"),
        (Outside, "or with places outside of it"),
    ],
)
def test_a_lie_that_is_noticed(liar: type[Client], sentence: str):
    """The second client lies. It invents a label instead of 1, which the first holds: then 77 and
    its 2 complete the list, and nobody finds the 3 of others in it. Or instead of 2, which the third
    holds: then the list has 0, 1, 77, 2, 3."""
    key = new_key()
    kinds = (Client, liar, Client, Client)
    clients = [kind(key, row) for kind, row in zip(kinds, FOUR, strict=True)]
    with pytest.raises(UserError, match=sentence):
        played(Exchange(clients, Server(clients[0].public_key(), 4), Post()))


def test_lies_that_nobody_notices():
    """About counts, and about one's own places in the list: a client that swaps two labels moves
    their samples. What all clients hold together stays the same."""

    class Boasting(Client):
        def pairs(self) -> list[Pair]:
            return [replace(pair, count=self._key.encrypt(1000)) for pair in super().pairs()]

    class Swapping(Client):
        def position(self, differences: Sequence[bytes]) -> int:
            return 1 - super().position(differences)

    key, counts = new_key(), [[10, 20], [1, 2]]
    totals = {}
    for liar in (Boasting, Swapping):
        clients = [Client(key, counts[0]), liar(key, counts[1])]
        exchange = played(Exchange(clients, Server(clients[0].public_key(), 2), Post()))
        masks = clients[0].placeholders
        totals[liar] = [exchange.counts[masks[label]] for label in (0, 1)]
    assert totals == {Boasting: [1010, 1020], Swapping: [10 + 2, 20 + 1]}
