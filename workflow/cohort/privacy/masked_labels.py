"""Stratify's masked labels (section IV-A): the server learns how many samples of each class all
clients hold together, but knows the classes only by random placeholders.

Numbers are encrypted by the homomorphic scheme CKKS of TenSEAL, one number per ciphertext. Clients
share a key pair, of which the server has only the public half. What each party learns nevertheless
is in docs/privacy.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cohort.core import UserError, lazy

if TYPE_CHECKING:
    import tenseal
else:
    tenseal = lazy("tenseal")  # an optional dependency

DEGREE = 8192  # of the polynomials: 128 bits of security up to a modulus of 218 bits
MODULUS_BITS = [60, 40, 40, 60]
SCALE = 2.0**40
NOISE = 1e-3  # tolerance: a thousand times the error of a sum of thousands of ciphertexts
MAX_SUM = 2**32  # far above any count of samples, far below what a wrong key decrypts
ANSWER, INDEX, COUNT = 1, 4, 8  # bytes of a yes or no, of a place in a list, of a decrypted sum

Pair = tuple[bytes, bytes]
"""An encrypted label of a client and the encrypted number of its samples."""


def new_key() -> tenseal.Context:
    """Generate a key pair, with which numbers are encrypted and decrypted."""
    kind, sizes = tenseal.SCHEME_TYPE.CKKS, MODULUS_BITS
    key = tenseal.context(kind, DEGREE, coeff_mod_bit_sizes=sizes, n_threads=1)
    key.global_scale = SCALE
    return key


class Client:
    """A client of the protocol: encrypts its `labels` and counts, and decrypts what the server
    calculates from them. It learns the placeholder of each label that it holds."""

    def __init__(self, key: tenseal.Context, counts: Sequence[int]):
        self.key, self.counts = key, counts
        self.labels = [label for label, count in enumerate(counts) if count]
        random.SystemRandom().shuffle(self.labels)  # their order would tell which is smaller
        self.placeholders: dict[int, int] = {}

    def encrypt(self, number: float) -> bytes:
        """Encrypt a number; every call returns another ciphertext."""
        return tenseal.ckks_vector(self.key, [number]).serialize()

    def decrypt(self, ciphertext: bytes) -> int:
        """Decrypt a whole number: the nearest to what the ciphertext holds, as noise would reveal
        the key. Raise UserError for a value that is not almost whole, or huge."""
        (value,) = tenseal.ckks_vector_from(self.key, ciphertext).decrypt()
        if not (abs(value) < MAX_SUM and abs(value - round(value)) < NOISE):
            why = "it was encrypted with another key, or somebody encrypted something else"
            raise UserError(f"a ciphertext does not decrypt to a whole number: {why}")
        return round(value)

    def pairs(self) -> list[Pair]:
        """The client's encrypted labels and counts: [E(l), E(n(l))] for each label l it holds."""
        return [(self.encrypt(n), self.encrypt(int(self.counts[n]))) for n in self.labels]

    def has_unlisted_label(self, differences: Sequence[bytes]) -> bool:
        """Whether a label of the client is missing from the server's list, from encrypted
        differences (own label minus listed label, for each entry of the list)."""
        return 0 not in [self.decrypt(difference) for difference in differences]

    def position(self, differences: Sequence[bytes]) -> int:
        """The position of a label of the client in the server's list, from such differences."""
        values = [self.decrypt(difference) for difference in differences]
        if values.count(0) != 1:
            times = f"a client finds its label {values.count(0)} times in the server's list"
            raise UserError(f"{times}, which must contain it once: some client lied")
        return values.index(0)


class Server:
    """The server of the protocol, which it plays with the clients: `encrypt`, `list_labels`,
    `map_labels`, and `count`, which leaves the samples of each placeholder in `counts`. Messages go
    to `add_traffic`, like Ledger's; `comparisons` of encrypted labels are counted."""

    def __init__(self, clients: Sequence[Client], classes: int, add_traffic: Callable[..., None]):
        self.clients, self.classes, self.add_traffic = clients, classes, add_traffic
        # the paper does not say where keys come from: the first client makes them for all
        key, others = clients[0].key, {"save_galois_keys": False, "save_relin_keys": False}
        pair, public_key = (key.serialize(save_secret_key=s, **others) for s in (True, False))
        add_traffic("keys", len(pair), to="client", copies=len(clients) - 1)
        add_traffic("keys", len(public_key), to="server")
        self.key = tenseal.context_from(public_key, n_threads=1)
        self.pairs: list[list[Pair]] = []
        self.listed: list[tenseal.CKKSVector] = []  # encrypted labels without duplicates
        self.masks: list[int] = []  # the placeholder of each listed label
        self.encrypted: dict[int, list[bytes]] = {}  # counts, by placeholder
        self.comparisons, self.counts = 0, dict[int, int]()

    def encrypt(self) -> None:
        """Let every client send its encrypted labels and counts."""
        self.pairs = [client.pairs() for client in self.clients]
        for label, count in (pair for pairs in self.pairs for pair in pairs):
            self.add_traffic("labels", len(label), to="server")
            self.add_traffic("counts", len(count), to="server")

    def list_labels(self) -> None:
        """List all labels of the first client, then of the others those that differ from all
        before, until the list is complete. Labels of the same client are not compared."""
        for client, pairs in zip(self.clients, self.pairs, strict=True):
            if len(self.listed) >= self.classes:
                break
            new = [
                label for label, _ in pairs if client.has_unlisted_label(self.differences(label))
            ]
            self.add_traffic("answers", ANSWER, to="server", copies=len(pairs))
            self.add(new)

    def add(self, labels: Sequence[bytes]) -> None:
        """Append encrypted labels to the list, each plus an encrypted zero: SEAL refuses to
        subtract a ciphertext from itself, because everybody could read the result."""
        for label in labels:
            zero = tenseal.ckks_vector(self.key, [0])
            self.listed.append(tenseal.ckks_vector_from(self.key, label) + zero)

    def differences(self, label: bytes) -> list[bytes]:
        """Send encrypted differences: a label minus each label of the list."""
        minuend = tenseal.ckks_vector_from(self.key, label)
        differences = [(minuend - listed).serialize() for listed in self.listed]
        self.comparisons += len(differences)
        for ciphertext in differences:
            self.add_traffic("differences", len(ciphertext), to="clients")
        return differences

    def map_labels(self) -> None:
        """Let clients learn the placeholders of their labels: random numbers, under which their
        encrypted counts are added up from now on."""
        self.masks = list(range(len(self.listed)))
        random.SystemRandom().shuffle(self.masks)
        for client, pairs in zip(self.clients, self.pairs, strict=True):
            positions = [client.position(self.differences(label)) for label, _ in pairs]
            self.add_traffic("answers", INDEX, to="server", copies=len(positions))
            masks = [self.masks[position] for position in positions]
            for mask, (_, count) in zip(masks, pairs, strict=True):
                self.encrypted.setdefault(mask, []).append(count)
            self.add_traffic("placeholders", INDEX, to="clients", copies=len(masks))
            client.placeholders = dict(zip(client.labels, masks, strict=True))

    def count(self) -> None:
        """Add up the counts of each placeholder and let the first client decrypt the sums."""
        for mask, counts in sorted(self.encrypted.items()):  # which says nothing of classes
            total = self.sum(counts)
            self.add_traffic("sums", len(total), to="clients")
            self.add_traffic("sums", COUNT, to="server")
            self.counts[mask] = self.clients[0].decrypt(total)

    def sum(self, counts: Sequence[bytes]) -> bytes:
        """The encrypted sum of at least one encrypted count."""
        first, *others = (tenseal.ckks_vector_from(self.key, count) for count in counts)
        return sum(others, first).serialize()
