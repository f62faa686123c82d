"""Properties of every scheme: it deals as its `exact` declares, and only the generator is random.

Who holds what under an overlap and with roles, which are not exact, is in test_overlap and
test_roles.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.partition import SCHEMES, Pool, parse_partition
from cohort.partition.schemes import Scheme

EXACT = [
    *(
        "iid",
        "classes-1",
        "classes-2",
        "classes-4",
        "covering-1",
        "covering-3",
        "sampled-1-1",
        "sampled-1-3",
        "sampled-4-4",
    ),
    *(
        "quantity-5-minimum2",
        "dir-5-minimum2",
        "dirplain-0.5",
        "dirplain-5",
        "dirplain-0.1-minimum0",
        "dirdomains-5-minimum2",
    ),
    *(
        "domains-1",
        "domains-2",
        "domains-3",
        "onedomain-0",
        "onedomain-2",
        "classes-2-overlap0.2x2",
        "domains-1-overlap0.2x2-replace",
    ),
]
SKEWED = [
    "dir-0.3",
    "dirdomains-0.5",
]  # whose minimum of 10 takes more samples than the small federations have
SHARING = ["roles-1", "roles-2", "roles-3"]
UNDRAWN = ["roles-1", "roles-2", "roles-3"]  # the same for every seed
NAMES = [*EXACT, *SKEWED, *SHARING]
CHANCE = np.random.default_rng(5)
POOL = Pool(
    CHANCE.permutation(np.repeat(np.arange(6), [300, 250, 200, 150, 200, 100])),
    CHANCE.permutation(np.arange(1200) % 15 // 4),
)


@st.composite
def federations(draw: st.DrawFn) -> tuple[Pool, int, int]:
    """Shuffled labels of 4 to 6 classes and 3 or 4 groups, enough samples of each, a number of
    clients, a seed."""
    clients = draw(st.integers(6, 12))
    per_class = draw(st.lists(st.integers(clients, 80), min_size=4, max_size=6))
    seed, groups = draw(st.integers(0, 10_000)), draw(st.integers(3, 4))
    rng, count = np.random.default_rng(seed), sum(per_class)
    extra = rng.integers(0, groups, count - groups * clients)
    return Pool(
        rng.permutation(np.repeat(np.arange(len(per_class)), per_class)),
        rng.permutation(np.concatenate([np.repeat(np.arange(groups), clients), extra])),
    ), clients, seed  # fmt: skip


def test_names_cover_every_scheme():
    assert {type(parse_partition(name)) for name in NAMES} == set(SCHEMES.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_scheme_declares_whether_it_is_exact(name: str):
    assert getattr(parse_partition(name), "base", parse_partition(name)).exact == (
        name not in SHARING
    )


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=25, derandomize=True)
@given(federation=federations())
def test_each_sample_goes_to_exactly_one_client(name: str, federation: tuple[Pool, int, int]):
    assert_deals(parse_partition(name), *federation)


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("seed", range(10))
def test_each_sample_goes_to_exactly_one_client_at_strong_skew(name: str, seed: int):
    assert_deals(parse_partition(name), POOL, 8, seed)


def assert_deals(scheme: Scheme, pool: Pool, clients: int, seed: int) -> None:
    parts = scheme.deal(pool, clients, np.random.default_rng(seed))
    assert len(parts) == clients
    assert min(len(part) for part in parts) >= getattr(
        getattr(scheme, "base", scheme), "minimum", 1
    )
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(pool.labels)))


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_parts_other_seed_other_parts(name: str):
    once, again, other = (
        parse_partition(name).deal(POOL, 8, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    for part, same in zip(once, again, strict=True):
        np.testing.assert_array_equal(part, same)
    moved = any(
        not np.array_equal(np.sort(part), np.sort(changed))
        for part, changed in zip(once, other, strict=True)
    )
    assert moved == (name not in UNDRAWN)


@pytest.mark.parametrize("name", NAMES)
def test_pool_and_global_random_state_are_not_touched(name: str):
    assert POOL.groups is not None
    pool = Pool(POOL.labels.copy(), POOL.groups.copy())
    once = parse_partition(name).deal(pool, 8, np.random.default_rng(1))
    np.random.seed(99)
    again = parse_partition(name).deal(pool, 8, np.random.default_rng(1))
    np.testing.assert_array_equal(np.concatenate(once), np.concatenate(again))
    np.testing.assert_array_equal(pool.labels, POOL.labels)
    np.testing.assert_array_equal(pool.groups, POOL.groups)


GROUPED = ["roles-2", "domains-2", "onedomain-0", "dirdomains-0.5", "domains-2-overlap0.2x2"]


@pytest.mark.parametrize("name", NAMES)
def test_schemes_that_deal_by_labels_ignore_groups(name: str):
    if any(name.startswith(grouped.partition("-")[0]) for grouped in GROUPED):
        return
    with_groups, without = (
        parse_partition(name).deal(pool, 8, np.random.default_rng(1))
        for pool in (POOL, Pool(POOL.labels))
    )
    np.testing.assert_array_equal(np.concatenate(with_groups), np.concatenate(without))


@pytest.mark.parametrize("name", GROUPED)
def test_schemes_that_deal_by_groups_refuse_data_without_groups(name: str):
    words = r"^it deals samples by their groups \(domains, roles\), and this data set has none$"
    with pytest.raises(ValueError, match=words):
        parse_partition(name).check(10, 20, 1000)
    with pytest.raises(ValueError, match=words):
        parse_partition(name).deal(Pool(POOL.labels), 8, np.random.default_rng(0))


IMPOSSIBLE = {
    "more clients than samples": (
        "iid",
        10,
        11,
        10,
        None,
        "10 samples cannot be dealt to 11 clients",
    ),
    "more classes per client than there are": (
        "classes-11",
        10,
        100,
        1000,
        None,
        "11 classes where there are only 10",
    ),
    "fewer clients than classes": (
        "classes-2",
        10,
        9,
        1000,
        None,
        "9 clients leave some of the 10 classes unheld",
    ),
    "classes: more clients than samples": (
        "classes-1",
        2,
        11,
        10,
        None,
        "10 samples cannot be dealt to 11 clients",
    ),
    "fewer samples than places": (
        "classes-5",
        100,
        100,
        450,
        None,
        "5 classes each need 500 samples at least, and there are 450",
    ),
    "fewer places than classes": (
        "covering-9",
        100,
        11,
        1000,
        None,
        "11 clients that hold 9 each cannot hold all 100 classes",
    ),
    "covering: more classes than there are": (
        "covering-11",
        10,
        100,
        1000,
        None,
        "11 classes where there are only 10",
    ),
    "minimum cannot be reached": (
        "dir-0.1",
        10,
        100,
        999,
        None,
        "999 samples cannot give 100 clients 10 each",
    ),
    "more classes drawn than there are": (
        "sampled-1-11",
        10,
        100,
        1000,
        None,
        "cannot draw 11 classes where there are only 10",
    ),
    "numbers of classes in the wrong order": (
        "sampled-3-2",
        10,
        100,
        1000,
        None,
        "3 is more than 2; the smaller number",
    ),
    "sampled: more clients than samples": (
        "sampled-1-2",
        2,
        11,
        10,
        None,
        "10 samples cannot be dealt to 11 clients",
    ),
    "quantity minimum cannot be reached": (
        "quantity-1",
        10,
        100,
        999,
        None,
        "999 samples cannot give 100 clients 10 each",
    ),
    "plain minimum cannot be reached": (
        "dirplain-0.1",
        10,
        100,
        99,
        None,
        "99 samples cannot give 100 clients 1 each",
    ),
    "more roles than there are": (
        "roles-5",
        80,
        100,
        1000,
        4,
        "a client cannot hold 5 roles where there are only 4",
    ),
    "more domains than there are": (
        "domains-5",
        7,
        10,
        1000,
        4,
        "a client cannot hold 5 domains where there are only 4",
    ),
    "fewer clients than domains": (
        "domains-2",
        7,
        3,
        1000,
        4,
        "3 clients leave some of the 4 domains unheld",
    ),
    "a domain that is not there": (
        "onedomain-4",
        7,
        10,
        1000,
        4,
        "no domain 4: the 4 domains are numbered from 0 to 3",
    ),
    "nobody for the other domains": ("onedomain-0", 7, 1, 1000, 4, "need two clients"),
    "domains: more clients than samples": (
        "domains-1",
        2,
        11,
        10,
        2,
        "10 samples cannot be dealt to 11 clients",
    ),
    "domain minimum cannot be reached": (
        "dirdomains-0.5",
        7,
        100,
        999,
        4,
        "999 samples cannot give 100 clients 10 each",
    ),
    "an overlap on what shares already": (
        "roles-2-overlap0.2x2",
        80,
        10,
        1000,
        4,
        "'roles-2' already lets clients share samples",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_partitions_are_refused(case: str):
    name, classes, clients, samples, groups, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        parse_partition(name).check(classes, clients, samples, groups)


POSSIBLE = [
    ("iid", 10, 10, 10, None),
    ("classes-10", 10, 10, 1000, None),
    ("classes-2", 10, 10, 1000, None),
    ("covering-10", 100, 10, 1000, None),
    ("dir-0.1", 10, 100, 1000, None),
    ("dirplain-0.1", 2, 5, 5, None),
    ("dirplain-0.1-minimum0", 2, 6, 5, None),
    ("sampled-10-10", 10, 10, 10, None),
    ("quantity-1", 10, 100, 1000, None),
    ("roles-4", 80, 100, 1000, 4),
    ("domains-4", 7, 4, 1000, 4),
    ("onedomain-3", 7, 2, 1000, 4),
    ("dirdomains-0.5", 7, 100, 1000, 4),
]


@pytest.mark.parametrize(("name", "classes", "clients", "samples", "groups"), POSSIBLE)
def test_barely_possible_partitions_are_not_refused(
    name: str, classes: int, clients: int, samples: int, groups: int | None
):
    parse_partition(name).check(classes, clients, samples, groups)


def test_limits_that_count_samples_shrink_with_the_share():
    assert str(parse_partition("dir-0.1").scaled(0.5)) == "dir-0.1-minimum5"
    assert str(parse_partition("dir-0.1").scaled(0.01)) == "dir-0.1-minimum1"
    assert str(parse_partition("dir-0.1").scaled(1.0)) == "dir-0.1"
    assert str(parse_partition("dirplain-0.1-minimum0").scaled(0.5)) == "dirplain-0.1-minimum0"
    assert str(parse_partition("quantity-0.5").scaled(0.5)) == "quantity-0.5-minimum5"
    assert str(parse_partition("dirdomains-0.5").scaled(0.5)) == "dirdomains-0.5-minimum5"
    assert str(parse_partition("classes-2").scaled(0.5)) == "classes-2"
    assert str(parse_partition("iid").scaled(0.5)) == "iid"
