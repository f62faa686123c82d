"""domains-d, onedomain-i and dirdomains-alpha: which domains a client holds, and how they are
split."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.partition import Pool, parse_partition
from cohort.partition.schemes import Dirichlet

CHANCE = np.random.default_rng(7)
PACS = Pool(
    CHANCE.integers(0, 7, 8992),
    CHANCE.permutation(np.repeat(np.arange(4), [2048, 2344, 1670, 2930])),
)


def tables(name: str, clients: int, seed: int, pool: Pool = PACS) -> np.ndarray:
    """How many samples each client has of each domain and class."""
    parts = parse_partition(name).deal(pool, clients, np.random.default_rng(seed))
    return np.stack([table(pool, part) for part in parts])


def table(pool: Pool, part: np.ndarray) -> np.ndarray:
    assert pool.groups is not None
    counts = np.zeros((4, 7), dtype=int)
    np.add.at(counts, (pool.groups[part], pool.labels[part]), 1)
    return counts


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("clients", [4, 10, 50])
@pytest.mark.parametrize("seed", range(3))
def test_every_client_holds_d_domains_among_them_its_own(d: int, clients: int, seed: int):
    held = tables(f"domains-{d}", clients, seed).sum(axis=2) > 0
    assert (held.sum(axis=1) == d).all()
    assert all(held[client, client % 4] for client in range(clients))


@pytest.mark.parametrize("name", ["domains-1", "domains-2", "domains-4"])
@pytest.mark.parametrize("seed", range(3))
def test_classes_of_a_domain_are_split_evenly_among_its_holders(name: str, seed: int):
    counts = tables(name, 10, seed)
    np.testing.assert_array_equal(counts.sum(axis=0), table(PACS, np.arange(8992)))
    for domain in range(4):
        of_holders = counts[counts[:, domain].sum(axis=1) > 0, domain]
        assert np.ptp(of_holders, axis=0).max() <= 1 and np.ptp(of_holders.sum(axis=1)) <= 1


def test_the_other_domains_are_equally_likely():
    """Two of three others: each in 2/3 of 600 draws, 400, give or take 11.5."""
    held = sum(
        tables("domains-3", 4, seed, Pool(PACS.labels[:200], PACS.groups[:200]))[1].sum(axis=1) > 0
        for seed in range(600)
    )
    assert held[1] == 600 and held.sum() == 1800
    assert np.abs(np.delete(held, 1) - 400).max() < 4 * 11.6


def test_which_samples_a_holder_gets_is_chance():
    """Two holders of ten samples of one domain: each sample lies at client 0 in half of 1,000
    draws, give or take 15.8."""
    pool, held = Pool(np.arange(10) % 3, np.zeros(10, dtype=int)), np.zeros(10)
    for seed in range(1000):
        held[parse_partition("domains-1").deal(pool, 2, np.random.default_rng(seed))[0]] += 1
    # 4, 3 and 3 samples of three classes are dealt in turn: client 0 always has two of the first class, then the odd places
    assert held[[0, 3, 6, 9]].sum() == 2000 and np.abs(held[[0, 3, 6, 9]] - 500).max() < 4 * 15.9
    assert held.sum() == 5000 and (held > 250).all() and (held < 750).all()


def test_a_domain_with_too_few_samples_is_named():
    pool = Pool(np.zeros(12, dtype=int), np.array([0] * 10 + [1] * 2))
    with pytest.raises(ValueError, match="domain 1 has 2 samples for 6 clients that hold it"):
        parse_partition("domains-2").deal(pool, 6, np.random.default_rng(0))


@pytest.mark.parametrize("domain", range(4))
@pytest.mark.parametrize("clients", [2, 10])
def test_the_first_client_alone_holds_the_domain(domain: int, clients: int):
    counts, whole = tables(f"onedomain-{domain}", clients, 3), table(PACS, np.arange(8992))
    np.testing.assert_array_equal(counts[0, domain], whole[domain])
    assert counts[0].sum() == whole[domain].sum() and counts[1:, domain].sum() == 0
    np.testing.assert_array_equal(counts.sum(axis=0), whole)
    assert np.ptp(counts[1:], axis=0).max() <= 1
    assert (
        np.ptp(counts[1:].sum(axis=(1, 2))) <= 1
        and np.ptp(counts[1:].sum(axis=2), axis=0).max() <= 1
    )


@pytest.mark.parametrize(
    ("groups", "words"),
    [([1, 1, 1, 1], "0 samples, the others 4 for 2"), ([0, 0, 0, 1], "3 samples, the others 1")],
)
def test_an_impossible_domain_is_refused(groups: list[int], words: str):
    with pytest.raises(ValueError, match=words):
        parse_partition("onedomain-0").deal(
            Pool(np.zeros(4, dtype=int), np.array(groups)), 3, np.random.default_rng(0)
        )


@pytest.mark.parametrize("seed", range(5))
def test_dirichlet_over_domains_is_dirichlet_over_classes_of_that_name(seed: int):
    assert PACS.groups is not None
    shards = parse_partition("dirdomains-0.5").deal(PACS, 10, np.random.default_rng(seed))
    expected = Dirichlet(alpha=0.5, minimum=10).deal(
        Pool(PACS.groups), 10, np.random.default_rng(seed)
    )
    for part, other in zip(shards, expected, strict=True):
        np.testing.assert_array_equal(part, other)


def test_dirichlet_over_domains_skews_domains_and_not_classes():
    """Within a client and domain classes come as they do in the domain: the largest of its domains
    has every class."""
    for seed in range(5):
        counts = tables("dirdomains-0.5", 10, seed)
        largest = counts[np.arange(10), counts.sum(axis=2).argmax(axis=1)]
        expected = largest.sum(axis=1, keepdims=True) / 7
        assert (np.abs(largest - expected) < 5 * np.sqrt(expected)).all()
        shares = counts.sum(axis=2) / counts.sum(axis=(0, 2))
        assert shares.max() > 0.3
