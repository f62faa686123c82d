"""Stratify's masked labels (section IV-A): the server learns how many samples of each class all
clients hold together, but knows the classes only by random placeholders.

Clients share a key pair, of which the server has only the public half. `Exchange` carries the
messages and counts their bytes; a party sees nothing else of another. What each of them learns
nevertheless is in docs/privacy.md.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from cohort.privacy.ckks import Calculator, KeyHolder, ProtocolError, new_key

if TYPE_CHECKING:
    from tenseal import CKKSVector

ANSWER, INDEX, COUNT = 1, 4, 8  # bytes of a yes or no, of a place in a list, of a decrypted sum


@dataclass(frozen=True)
class Pair:
    """An encrypted label of a client and the encrypted number of its samples."""

    label: bytes
    count: bytes


class Client:
    """A client of the protocol: encrypts its labels and counts, and decrypts what the server
    calculates from them.

    It sends its labels in random order, which would otherwise tell the server which is smaller.
    `placeholders` is what it learns: the placeholder of each label that it holds.
    """

    def __init__(self, key: bytes, counts: Sequence[int]):
        self._key, self._counts = KeyHolder(key), counts
        self._labels = [label for label, count in enumerate(counts) if count]
        random.SystemRandom().shuffle(self._labels)
        self.placeholders: dict[int, int] = {}

    def public_key(self) -> bytes:
        """The public key, with which the server calculates on ciphertexts."""
        return self._key.public_key()

    def pairs(self) -> list[Pair]:
        """The client's encrypted labels and counts: [E(l), E(n(l))] for each label l it holds."""
        encrypt, counts = self._key.encrypt, self._counts
        return [Pair(encrypt(label), encrypt(int(counts[label]))) for label in self._labels]

    def is_new(self, differences: Sequence[bytes]) -> bool:
        """Whether a label of the client is missing from the server's list, from encrypted
        differences (own label minus listed label, for each entry of the list)."""
        return not self._zeros(differences)

    def position(self, differences: Sequence[bytes]) -> int:
        """The position in the server's list of a label of the client, from encrypted differences
        (own label minus listed label, for each entry of the list)."""
        zeros = self._zeros(differences)
        if len(zeros) != 1:
            raise ProtocolError(
                f"a client finds its label {len(zeros)} times in the server's list, which must "
                "contain it once: some client lied"
            )
        return zeros[0]

    def learn(self, placeholders: Sequence[int]) -> None:
        """Keep the placeholders of the client's labels, in the order in which it sent them."""
        self.placeholders = dict(zip(self._labels, placeholders, strict=True))

    def decrypt(self, sums: Sequence[bytes]) -> list[int]:
        """Decrypt the server's sums, each the samples of one class over all clients, and round
        them, as their noise would reveal the key. Raise ProtocolError for a sum that is not nearly
        whole."""
        return [self._key.decrypt(ciphertext) for ciphertext in sums]

    def _zeros(self, differences: Sequence[bytes]) -> list[int]:
        values = map(self._key.decrypt, differences)
        return [index for index, value in enumerate(values) if value == 0]


class Server:
    """The server of the protocol: keeps a list of encrypted labels without duplicates, at most as
    many as there are `classes`, and the encrypted counts under each placeholder."""

    def __init__(self, public_key: bytes, classes: int):
        self._calculator, self._classes = Calculator(public_key), classes
        self._unique: list[CKKSVector] = []
        self._masks: list[int] = []  # the placeholder of each label of the list
        self._counts: dict[int, list[bytes]] = {}  # by placeholder

    @property
    def is_complete(self) -> bool:
        """Whether the list has the required number of labels."""
        return len(self._unique) >= self._classes

    def add(self, labels: Sequence[bytes]) -> None:
        """Append encrypted labels to the server's list."""
        self._unique += map(self._calculator.rerandomized, labels)
        if len(self._unique) > self._classes:
            raise ProtocolError(
                f"clients have {len(self._unique)} different labels, but there are only "
                f"{self._classes} classes: some client lied"
            )

    def differences(self, label: bytes) -> list[bytes]:
        """Encrypted differences: a label minus each label of the server's list."""
        return self._calculator.differences(label, self._unique)

    def draw_placeholders(self) -> None:
        """Give each label of the list, which is now final, a random placeholder."""
        self._masks = list(range(len(self._unique)))
        random.SystemRandom().shuffle(self._masks)

    def take_counts(self, pairs: Sequence[Pair], positions: Sequence[int]) -> list[int]:
        """Keep a client's encrypted counts under the random placeholders of its labels; return
        these. `positions` are the labels' places in the server's list; ProtocolError if they do not
        fit."""
        if len(set(positions)) < len(pairs) or not set(positions) <= set(range(len(self._masks))):
            raise ProtocolError(
                f"a client with {len(pairs)} labels answers with {len(set(positions))} different "
                "places in the server's list, or with places outside of it: it lied"
            )
        masks = [self._masks[position] for position in positions]
        for mask, pair in zip(masks, pairs, strict=True):
            self._counts.setdefault(mask, []).append(pair.count)
        return masks

    def sums(self) -> dict[int, bytes]:
        """The encrypted number of all samples of each placeholder, by placeholder in ascending
        order, which says nothing of classes."""
        return {mask: self._calculator.sum(self._counts[mask]) for mask in sorted(self._counts)}


class RecordSent(Protocol):
    """Callback that records the bytes of a message: see Ledger.sent."""

    def __call__(
        self, what: str, size: int, *, to: Literal["server", "clients", "client"], copies: int = 1
    ) -> None: ...


@dataclass
class Exchange:
    """The protocol of masked labels between clients and server, step by step: `begin`, `encrypt`,
    `list_labels`, `map_labels`, `count`.

    The paper does not say where keys come from: the first client makes them for all.
    """

    clients: Sequence[Client]
    server: Server
    sent: RecordSent
    comparisons: int = 0
    pairs: list[list[Pair]] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)  # by placeholder

    @classmethod
    def begin(cls, counts: Sequence[Sequence[int]], classes: int, sent: RecordSent) -> Exchange:
        """Create clients with these label counts and one key pair, and the server with its public
        half."""
        key = new_key()
        sent("keys", len(key), to="client", copies=len(counts) - 1)
        clients = [Client(key, row) for row in counts]
        public_key = clients[0].public_key()
        sent("keys", len(public_key), to="server")
        return cls(clients, Server(public_key, classes), sent)

    def encrypt(self) -> None:
        """Let every client send its encrypted labels and counts."""
        self.pairs = [client.pairs() for client in self.clients]
        for pair in (pair for pairs in self.pairs for pair in pairs):
            self.sent("labels", len(pair.label), to="server")
            self.sent("counts", len(pair.count), to="server")

    def list_labels(self) -> None:
        """Make the server's list: all labels of the first client, then of every other client those
        that differ from all labels before, until the list is complete.

        Labels of one client differ, so they are not compared with each other.
        """
        for client, pairs in zip(self.clients, self.pairs, strict=True):
            if self.server.is_complete:
                break
            labels = [pair.label for pair in pairs]
            new = [label for label in labels if client.is_new(self._differences(label))]
            self.sent("answers", ANSWER, to="server", copies=len(labels))
            self.server.add(new)
        self.server.draw_placeholders()

    def map_labels(self) -> None:
        """Let clients learn the placeholders of their labels, under which the server keeps
        counts."""
        for client, pairs in zip(self.clients, self.pairs, strict=True):
            positions = [client.position(self._differences(pair.label)) for pair in pairs]
            self.sent("answers", INDEX, to="server", copies=len(positions))
            masks = self.server.take_counts(pairs, positions)
            self.sent("placeholders", INDEX, to="clients", copies=len(masks))
            client.learn(masks)

    def count(self) -> None:
        """Set `counts`, the samples of each placeholder: the server adds, the first client
        decrypts."""
        sums = self.server.sums()
        for ciphertext in sums.values():
            self.sent("sums", len(ciphertext), to="clients")
        self.sent("sums", COUNT, to="server", copies=len(sums))
        numbers = self.clients[0].decrypt(list(sums.values()))
        self.counts = dict(zip(sums, numbers, strict=True))

    def _differences(self, label: bytes) -> list[bytes]:
        differences = self.server.differences(label)
        self.comparisons += len(differences)
        for ciphertext in differences:
            self.sent("differences", len(ciphertext), to="clients")
        return differences
