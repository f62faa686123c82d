"""The protocol of masked labels: exact counts, what it costs, and what becomes of lies."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import tenseal

from cohort.core.errors import UserError
from cohort.partition.schemes import draw_holders
from cohort.privacy import masked_labels
from cohort.privacy.masked_labels import Client, Pair, Server, new_key

FOUR = [[3, 5, 0, 0], [0, 2, 7, 0], [0, 0, 1, 4], [1, 0, 0, 9]]
NOT_WHOLE = "does not decrypt to a whole number"


class Post:
    """Counts messages and bytes by content and direction."""

    def __init__(self) -> None:
        self.bytes, self.messages = Counter(), Counter()

    def __call__(self, content: str, size: int, *, to: str, copies: int = 1) -> None:
        self.bytes[content, to] += size * copies
        self.messages[content, to] += copies


def played(
    counts: Sequence[Sequence[int]],
    post: Post | None = None,
    cheaters: dict[int, type[Client]] | None = None,
) -> Server:
    """The protocol with these label counts, in which some clients may cheat."""
    key, kinds = new_key(), cheaters or {}
    clients = [kinds.get(index, Client)(key, row) for index, row in enumerate(counts)]
    server = Server(clients, len(counts[0]), post or Post())
    for step in (server.encrypt, server.list_labels, server.map_labels, server.count):
        step()
    return server


def recovered(server: Server) -> dict[int, set[int]]:
    """The decrypted counts that clients find for each label: one, if they agree."""
    results: dict[int, set[int]] = {}
    for client in server.clients:
        for label, placeholder in client.placeholders.items():
            results.setdefault(label, set()).add(server.counts[placeholder])
    return results


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
    server = played(FOUR, post)
    assert recovered(server) == {0: {4}, 1: {7}, 2: {8}, 3: {13}}
    assert sorted(server.counts) == [0, 1, 2, 3]  # the placeholders
    assert server.comparisons == comparisons(np.array(FOUR)) == 2 * 2 + 2 * 3 + 8 * 4
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


def test_forty_classes_and_ten_clients(monkeypatch: pytest.MonkeyPatch):
    """With ciphertexts of a sixth of the size, or it would take long."""
    monkeypatch.setattr(masked_labels, "DEGREE", 4096)
    monkeypatch.setattr(masked_labels, "MODULUS_BITS", [50, 50])
    monkeypatch.setattr(masked_labels, "SCALE", 2.0**30)
    rng, counts = np.random.default_rng(0), np.zeros((10, 40), dtype=np.int64)
    for label, held in enumerate(draw_holders(40, 10, 6, 4, rng)):
        counts[held, label] = rng.integers(1, 5000, len(held))
    server = played(counts.tolist())
    assert recovered(server) == {label: {n} for label, n in enumerate(counts.sum(axis=0))}
    assert server.comparisons == comparisons(counts)


def test_the_order_of_labels_and_the_placeholders_are_random():
    """Of 20 labels in order, or the same order twice, a run sees one in 10^18."""
    key, masks = new_key(), []
    orders = [list(Client(key, [1] * 20).labels) for _ in range(2)]
    assert orders[0] != orders[1] != sorted(orders[1])
    for _ in range(2):
        server = Server([Client(key, [])], 20, Post())
        server.listed, server.pairs = [None] * 20, [[]]
        server.map_labels()
        masks.append(server.masks)
    assert masks[0] != masks[1] != sorted(masks[1])


# encryption


@pytest.fixture(scope="module")
def client() -> Client:
    return Client(new_key(), [1])


@pytest.fixture
def server(client: Client) -> Server:
    return Server([client], 1, Post())


def test_sums_and_differences_are_exact(client: Client, server: Server):
    """Also of a ciphertext with itself, and of a thousand large counts; noise adds up fastest where it is the same."""
    numbers = [client.encrypt(number) for number in (0, 7, 99, -(2**31))]
    server.add(numbers)
    differences = map(client.decrypt, server.differences(numbers[1]))
    assert list(differences) == [7, 0, -92, 2**31 + 7]
    assert client.decrypt(server.sum(numbers[:3])) == 106
    assert client.encrypt(3) != client.encrypt(3)
    large = [client.encrypt(581_011), client.encrypt(1)] * 500
    assert client.decrypt(server.sum(large)) == 500 * 581_012


def test_only_the_right_key_decrypts(client: Client, server: Server):
    with pytest.raises(ValueError, match="secret_key"):
        Client(server.key, [1]).decrypt(client.encrypt(3))
    other = Client(new_key(), [1])
    server.add([other.encrypt(3)])
    (mixed,) = server.differences(client.encrypt(3))
    for reader, ciphertext in ((other, client.encrypt(3)), (client, mixed), (other, mixed)):
        with pytest.raises(UserError, match=NOT_WHOLE):
            reader.decrypt(ciphertext)


# lies


class AnotherKey(Client):
    def __init__(self, key: tenseal.Context, counts: Sequence[int]):
        super().__init__(new_key(), counts)


class AllNew(Client):
    """Says that it has never seen a label."""

    def has_unlisted_label(self, differences: Sequence[bytes]) -> bool:
        return True


class Between(Client):
    """Sends a fraction instead of its label 1."""

    def pairs(self) -> list[Pair]:
        result = super().pairs()
        position = self.labels.index(1)
        result[position] = self.encrypt(1.5), result[position][1]
        return result


@pytest.mark.parametrize(
    ("liar", "sentence"),
    [
        (AnotherKey, "encrypted with another key"),
        (AllNew, "a client finds its label 2 times"),
        (Between, "somebody encrypted something else"),
    ],
)
def test_a_lie_of_the_second_client_that_is_noticed(liar: type[Client], sentence: str):
    with pytest.raises(UserError, match=sentence):
        played(FOUR, cheaters={1: liar})
