"""What each scheme deals, by hand, by plain implementations of its rule, and in the mean."""

from math import gcd

import numpy as np
import pytest

from cohort.core.randomness import generator
from cohort.partition import Pool
from cohort.partition.schemes import Roles, Sampled
from tests.partition.dealing import count_labels, deal

ALIKE = np.zeros(12, dtype=int)  # labels of samples of one class


# iid


@pytest.mark.parametrize(
    ("samples", "clients"), [(100, 10), (101, 10), (109, 10), (7, 7), (45_000, 100)]
)
def test_iid_sizes_differ_by_at_most_one(samples: int, clients: int):
    sizes = [len(part) for part in deal("iid", np.zeros(samples, dtype=int), clients)]
    assert sum(sizes) == samples
    assert set(sizes) <= {samples // clients, -(-samples // clients)}


# quantity-alpha


@pytest.mark.parametrize("seed", range(5))
def test_quantity_gives_everyone_the_minimum_and_ignores_labels(seed: int):
    """The same parts whatever the labels, and each client holds every class in nearly equal shares."""
    labels = np.random.default_rng(9).permutation(np.repeat(np.arange(10), 1000))
    parts = deal("quantity-0.5-minimum200", labels, 8, seed)
    others = deal("quantity-0.5-minimum200", labels[::-1], 8, seed)
    assert min(map(len, parts)) >= 200
    for part, other in zip(parts, others, strict=True):
        np.testing.assert_array_equal(part, other)
        expected = len(part) / 10
        assert (np.abs(np.bincount(labels[part]) - expected) < 5 * np.sqrt(expected)).all()


# classes-k and covering-k

PER_CLASS = [500, 437, 250, 501, 333]
LABELS = np.random.default_rng(3).permutation(np.repeat(np.arange(5), PER_CLASS))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("clients", [5, 12, 20])
@pytest.mark.parametrize("seed", range(3))
def test_every_client_holds_k_classes_among_them_its_own_in_even_parts(
    k: int, clients: int, seed: int
):
    counts = count_labels(f"classes-{k}", LABELS, clients, seed)
    assert ((counts > 0).sum(axis=1) == k).all()
    assert all(counts[client, client % 5] > 0 for client in range(clients))
    for column, total in zip(counts.T, PER_CLASS, strict=True):
        assert column.sum() == total and np.ptp(column[column > 0]) <= 1


def labels_of(classes: int, per_class: int = 30) -> np.ndarray:
    return np.random.default_rng(0).permutation(np.repeat(np.arange(classes), per_class))


@pytest.mark.parametrize(
    ("name", "clients", "own", "chance"),
    [("classes-3", 5, [0], 2 / 4), ("covering-3", 3, [0, 1], 1 / 3)],
)
def test_the_other_classes_are_equally_likely(
    name: str, clients: int, own: list[int], chance: float
):
    """Of five classes, client 0 always has its own, and the others with the same probability."""
    draws, labels = 1200, np.repeat(np.arange(5), 10)
    held = sum(count_labels(name, labels, clients, seed)[0] > 0 for seed in range(draws))
    assert (held[own] == draws).all() and held.sum() == 3 * draws
    deviation = np.sqrt(draws * chance * (1 - chance))
    assert np.abs(np.delete(held, own) - draws * chance).max() < 4 * deviation


@pytest.mark.parametrize(
    ("classes", "k", "clients"),
    [(100, 10, 10), (100, 30, 10), (200, 20, 10), (200, 60, 10), (10, 4, 3), (7, 3, 3), (5, 5, 1)],
)
@pytest.mark.parametrize("seed", range(5))
def test_covering_leaves_no_class_unheld(classes: int, k: int, clients: int, seed: int):
    counts = count_labels(f"covering-{k}", labels_of(classes), clients, seed)
    assert ((counts > 0).sum(axis=1) == k).all() and (counts.sum(axis=0) == 30).all()
    assert all(np.ptp(column[column > 0]) <= 1 for column in counts.T)
    if k * clients == classes:  # client i holds its block of k classes, all of them
        blocks = np.repeat(np.eye(clients, dtype=int), k, axis=1)
        np.testing.assert_array_equal(counts, 30 * blocks)


# sampled-low-high


def held_classes(name: str, labels: np.ndarray, seed: int) -> np.ndarray:
    """The number of classes of each of 100 clients, which all hold 450 samples."""
    parts = deal_addressed(name, labels, 100, seed)
    assert {len(part) for part in parts} == {450}
    return np.array([len(np.unique(labels[part])) for part in parts])


def deal_addressed(name: str, labels: np.ndarray, clients: int, seed: int) -> list[np.ndarray]:
    low, high = map(int, name.split("-")[1:])
    return Sampled(low=low, high=high).deal(Pool(labels), clients, generator(seed, "partition"))


def cifar100(seed: int) -> np.ndarray:
    """45,000 of 50,000 labels as `random_split` leaves them: 450 of each class, give or take 6."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(100), 500))[:45_000]


@pytest.mark.parametrize(
    ("name", "mean", "most"),
    [
        *(("sampled-1-50", 24.38, 49), ("sampled-1-2", 2.29, 12), ("sampled-5-6", 6.1, 12)),
        *(("sampled-10-11", 11.0, 13), ("sampled-50-51", 50.31, 52)),
    ],
)
def test_classes_per_client_are_those_of_the_authors(name: str, mean: float, most: int):
    """Their one seed lies among ours: mean and maximum, as measured with their code."""
    held = np.stack([held_classes(name, cifar100(seed), seed) for seed in range(20)])
    assert held.mean(axis=1).min() - 0.01 <= mean <= held.mean(axis=1).max() + 0.01
    assert held.max(axis=1).min() <= most <= held.max(axis=1).max()


def literal_sampled(
    per_class: list[int], order: np.ndarray, low: int, high: int, rng: np.random.Generator
) -> list[list[int]]:
    """A plain implementation of the rule, one sample at a time."""
    left, total, clients = list(per_class), sum(per_class), len(order)
    table = [[0] * len(left) for _ in order]
    for client in order:
        size = total // clients + (1 if client < total % clients else 0)
        available = rng.permutation([label for label, count in enumerate(left) if count])
        chosen = available[: rng.integers(low, high + 1)]
        for index, label in enumerate(chosen):
            wanted = size // len(chosen) + (1 if index < size % len(chosen) else 0)
            table[client][label] = min(wanted, left[label])
        for label in chosen:
            left[label] -= table[client][label]
        missing = size - sum(table[client])
        for label in sorted(range(len(left)), key=lambda label: -left[label]):
            more = min(missing, left[label])
            table[client][label] += more
            left[label] -= more
            missing -= more
    return table


@pytest.mark.parametrize("seed", range(20))
def test_counts_follow_the_plain_implementation(seed: int):
    per_class, order = [70, 30, 101, 55, 41], np.random.default_rng(seed).permutation(9)
    rng, literal_rng = np.random.default_rng(seed), np.random.default_rng(seed)
    counts = Sampled(low=1, high=4).draw_counts(np.array(per_class), order, rng)
    assert counts.tolist() == literal_sampled(per_class, order, 1, 4, literal_rng)


# domains-d, onedomain-i and dirdomains-alpha

CHANCE = np.random.default_rng(7)
PACS_SIZES = [2048, 2344, 1670, 2930]
PACS = Pool(CHANCE.integers(0, 7, 8992), CHANCE.permutation(np.repeat(np.arange(4), PACS_SIZES)))


def domain_tables(name: str, clients: int, seed: int) -> np.ndarray:
    """How many samples each client has of each domain and class."""
    counts = np.zeros((clients, 4, 7), dtype=int)
    for client, part in enumerate(deal(name, PACS, clients, seed)):
        np.add.at(counts[client], (PACS.groups[part], PACS.labels[part]), 1)
    return counts


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("clients", [4, 10, 50])
@pytest.mark.parametrize("seed", range(3))
def test_every_client_holds_d_domains_among_them_its_own(d: int, clients: int, seed: int):
    """Among its holders, the classes of a domain are split evenly."""
    counts = domain_tables(f"domains-{d}", clients, seed)
    held = counts.sum(axis=2) > 0
    assert (held.sum(axis=1) == d).all()
    assert all(held[client, client % 4] for client in range(clients))
    assert counts.sum(axis=(0, 2)).tolist() == PACS_SIZES
    for domain in range(4):
        of_holders = counts[held[:, domain], domain]
        assert np.ptp(of_holders, axis=0).max() <= 1 and np.ptp(of_holders.sum(axis=1)) <= 1


@pytest.mark.parametrize("domain", range(4))
@pytest.mark.parametrize("clients", [2, 10])
def test_the_first_client_alone_holds_the_domain(domain: int, clients: int):
    counts = domain_tables(f"onedomain-{domain}", clients, 3)
    assert counts.sum(axis=(0, 2)).tolist() == PACS_SIZES
    assert counts[0].sum() == counts[0, domain].sum() == PACS_SIZES[domain]
    assert np.ptp(counts[1:], axis=0).max() <= 1 and np.ptp(counts[1:].sum(axis=(1, 2))) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_dirichlet_over_domains_is_dirichlet_over_classes_of_that_name(seed: int):
    """Within a client and domain, classes come as they do in the domain: the largest of its domains has every class."""
    parts, classes = deal("dirdomains-0.5", PACS, 10, seed), deal("dir-0.5", PACS.groups, 10, seed)
    for part, expected in zip(parts, classes, strict=True):
        np.testing.assert_array_equal(part, expected)
    counts = domain_tables("dirdomains-0.5", 10, seed)
    largest = counts[np.arange(10), counts.sum(axis=2).argmax(axis=1)]
    expected = largest.sum(axis=1, keepdims=True) / 7
    assert (np.abs(largest - expected) < 5 * np.sqrt(expected)).all()


# what only dealing can find out


@pytest.mark.parametrize(
    ("name", "labels", "groups", "clients", "message"),
    [
        ("classes-2", [0] * 20 + [1] * 3, None, 4, "class 1 has 3 samples for 4 clients"),
        ("domains-2", [0] * 12, [0] * 10 + [1] * 2, 6, "domain 1 has 2 samples for 6 clients"),
        ("onedomain-0", [0] * 4, [1] * 4, 3, "0 of 4 samples for one of 3"),
        ("onedomain-0", [0] * 4, [0, 0, 0, 1], 3, "3 of 4 samples for one of 3"),
        ("roles-3", [0] * 5, [0, 2, 2, 0, 2], 2, "hold 3 roles of 2 with samples"),
        ("quantity-0.01", [0] * 1000, None, 50, "none of 10,000 draws .* 10 samples; try"),
    ],
)
def test_a_deal_that_is_impossible_says_why(
    name: str, labels: list[int], groups: list[int] | None, clients: int, message: str
):
    pool = Pool(np.array(labels), None if groups is None else np.array(groups))
    with pytest.raises(ValueError, match=message):
        deal(name, pool, clients)


# roles-k

SIZES = [5, 40, 7, 7, 300, 1, 22, 7, 90, 13, 2, 61]
BY_SIZE = [4, 8, 11, 1, 6, 9, 2, 3, 7, 0, 10, 5]  # of two alike, the lower number first
ROLES = Pool(
    np.zeros(sum(SIZES), dtype=int),
    np.random.default_rng(0).permutation(np.repeat(np.arange(12), SIZES)),
)


def literal_roles(roles: list[int], clients: int, k: int) -> list[set[int]]:
    """As the authors deal: in turn from the list, around and around; a role dealt twice to a client does not count."""
    held: list[set[int]] = [set() for _ in range(clients)]
    position = 0
    while min(map(len, held)) < k:
        for client in range(clients):
            if len(held[client]) < k:
                held[client].add(roles[position % len(roles)])
                position += 1
    return held


@pytest.mark.parametrize("clients", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 24, 25])
@pytest.mark.parametrize("k", range(1, 13))
def test_roles_are_dealt_as_in_the_authors_loop(clients: int, k: int):
    """Where that loop ends; elsewhere as far as it goes round without a repetition. Who holds a
    role holds all of it, no role is dealt to two more clients than another, and the smallest roles
    are left out."""
    assert ROLES.groups is not None
    parts = Roles(k=k).deal(ROLES, clients, np.random.default_rng(0))
    held = [set(ROLES.groups[part].tolist()) for part in parts]
    turns = 12 // gcd(12, clients)
    literal = literal_roles(BY_SIZE, clients, min(k, turns))
    assert held == literal if k <= turns else all(map(set.issubset, literal, held))
    assert [len(roles) for roles in held] == [k] * clients
    assert np.ptp(np.bincount(np.concatenate([*map(list, held)]), minlength=12)) <= 1
    for part, roles in zip(parts, held, strict=True):
        expected = np.flatnonzero(np.isin(ROLES.groups, list(roles)))
        np.testing.assert_array_equal(np.sort(part), expected)
    assert set.union(*held) == set(BY_SIZE[: k * clients])


def test_roles_by_hand():
    """Two roles each of 300, 90, 61, 40, ...: client 0 has the first and the third, client 1 the
    second and the fourth. Roles without samples are not dealt."""
    assert [len(part) for part in deal("roles-2", ROLES, 2)] == [361, 130]
    pool = Pool(np.zeros(5, dtype=int), np.array([0, 2, 2, 0, 2]))
    assert [sorted(part.tolist()) for part in deal("roles-1", pool, 2)] == [[1, 2, 4], [0, 3]]
