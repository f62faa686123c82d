"""Properties of every scheme: it deals as its `exact` declares, and only the generator is random.

Who holds what under an overlap and with roles, which are not exact, is in test_overlap and
test_schemes.
"""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.partition import SCHEMES, Pool, parse_partition
from tests.partition.dealing import deal

EXACT = ["iid", "classes-1", "classes-2", "classes-4", "covering-1", "covering-3", "sampled-1-1"]
EXACT += ["sampled-1-3", "sampled-4-4", "quantity-5-minimum2", "dir-5-minimum2", "dirplain-0.5"]
EXACT += ["dirplain-5", "dirplain-0.1-minimum0", "dirdomains-5-minimum2", "domains-1", "domains-2"]
EXACT += ["domains-3", "onedomain-0", "onedomain-2", "classes-2-overlap0.2x2"]
EXACT += ["domains-1-overlap0.2x2-replace", "dirclients-0.1"]
SKEWED = ["dir-0.3", "dirdomains-0.5"]  # their minimum of 10 is too much for small federations
SHARING = ["roles-1", "roles-2", "roles-3"]  # the same for every seed
NAMES = [*EXACT, *SKEWED, *SHARING]
GROUPED = ["roles-2", "domains-2", "onedomain-0", "dirdomains-0.5", "domains-2-overlap0.2x2"]
CHANCE = np.random.default_rng(5)
POOL = Pool(
    CHANCE.permutation(np.repeat(np.arange(6), [300, 250, 200, 150, 200, 100])),
    CHANCE.permutation(np.arange(1200) % 15 // 4),
)


@st.composite
def federations(draw: st.DrawFn) -> tuple[Pool, int, int]:
    """Shuffled labels of 4 to 6 classes and 3 or 4 groups, enough samples of each, a number of clients, a seed."""
    clients = draw(st.integers(6, 12))
    per_class = draw(st.lists(st.integers(clients, 80), min_size=4, max_size=6))
    seed, groups = draw(st.integers(0, 10_000)), draw(st.integers(3, 4))
    rng, count = np.random.default_rng(seed), sum(per_class)
    extra = rng.integers(0, groups, count - groups * clients)
    labels = rng.permutation(np.repeat(np.arange(len(per_class)), per_class))
    of_groups = rng.permutation(np.concatenate([np.repeat(np.arange(groups), clients), extra]))
    return Pool(labels, of_groups), clients, seed


def test_names_cover_every_scheme():
    schemes = [parse_partition(name) for name in NAMES]
    assert {type(scheme) for scheme in schemes} == set(SCHEMES.values())
    exact = [name for name in NAMES if (scheme := parse_partition(name)) and base(scheme).exact]
    assert exact == [*EXACT, *SKEWED]


def base(scheme):
    """The scheme under an overlap, or the scheme itself."""
    return getattr(scheme, "base", scheme)


def assert_each_sample_goes_to_one_client(name: str, pool: Pool, clients: int, seed: int) -> None:
    parts = deal(name, pool, clients, seed)
    assert len(parts) == clients
    assert min(map(len, parts)) >= getattr(base(parse_partition(name)), "minimum", 1)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(pool.labels)))


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=25, derandomize=True)
@given(federation=federations())
def test_each_sample_goes_to_exactly_one_client(name: str, federation: tuple[Pool, int, int]):
    assert_each_sample_goes_to_one_client(name, *federation)


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("seed", range(10))
def test_each_sample_goes_to_exactly_one_client_at_strong_skew(name: str, seed: int):
    assert_each_sample_goes_to_one_client(name, POOL, 8, seed)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_seed_matters_and_nothing_is_changed(name: str):
    assert POOL.groups is not None
    pool = Pool(POOL.labels.copy(), POOL.groups.copy())
    once = deal(name, pool, 8, 1)
    np.random.seed(99)
    again, other = deal(name, pool, 8, 1), deal(name, pool, 8, 2)
    for part, repeated in zip(once, again, strict=True):
        np.testing.assert_array_equal(part, repeated)
    moved = [set(part) != set(changed) for part, changed in zip(once, other, strict=True)]
    assert any(moved) == (name not in SHARING)
    np.testing.assert_array_equal(pool.labels, POOL.labels)
    np.testing.assert_array_equal(pool.groups, POOL.groups)


@pytest.mark.parametrize("name", NAMES)
def test_groups_matter_to_schemes_that_deal_by_them_only(name: str):
    if not any(name.startswith(grouped.partition("-")[0]) for grouped in GROUPED):
        with_groups, without = deal(name, POOL, 8, 1), deal(name, POOL.labels, 8, 1)
        np.testing.assert_array_equal(np.concatenate(with_groups), np.concatenate(without))


@pytest.mark.parametrize("name", GROUPED)
def test_schemes_that_deal_by_groups_refuse_data_without_groups(name: str):
    message = r"^it deals samples by their groups \(domains, roles\), and this data set has none$"
    with pytest.raises(ValueError, match=message):
        parse_partition(name).check(10, 20, 1000)
    with pytest.raises(ValueError, match=message):
        deal(name, POOL.labels, 8)


IMPOSSIBLE = [
    ("iid", 10, 11, 10, None, "10 samples cannot be dealt to 11 clients"),
    ("sampled-1-2", 2, 11, 10, None, "10 samples cannot be dealt to 11 clients"),
    ("domains-1", 2, 11, 10, 2, "10 samples cannot be dealt to 11 clients"),
    ("classes-11", 10, 100, 1000, None, "11 classes where there are only 10"),
    ("sampled-1-11", 10, 100, 1000, None, "cannot draw 11 classes of 10"),
    ("classes-2", 10, 9, 1000, None, "9 clients leave some of the 10 classes unheld"),
    ("classes-5", 100, 100, 450, None, "100 clients of 5 classes need over 450"),
    ("covering-9", 100, 11, 1000, None, "11 clients of 9 classes cannot hold 100"),
    ("dir-0.1", 10, 100, 999, None, "999 samples cannot give 100 clients 10 each"),
    ("dir-0.1-overlap0.2x2", 10, 100, 999, None, "999 samples cannot give 100 clients 10 each"),
    ("dirplain-0.1", 10, 100, 99, None, "99 samples cannot give 100 clients 1 each"),
    ("sampled-3-2", 10, 100, 1000, None, "3 is more than 2; the smaller number"),
    ("roles-5", 80, 100, 1000, 4, "a client cannot hold 5 roles where there are only 4"),
    ("domains-5", 7, 10, 1000, 4, "a client cannot hold 5 domains where there are only 4"),
    ("domains-2", 7, 3, 1000, 4, "3 clients leave some of the 4 domains unheld"),
    ("onedomain-4", 7, 10, 1000, 4, "no domain 4: the first of 4 is number 0"),
    ("onedomain-0", 7, 1, 1000, 4, "need two clients"),
    ("roles-2-overlap0.2x2", 80, 10, 1000, 4, "'roles-2' already lets clients share samples"),
    ("iid-overlap0.1x12", 5, 12, 1200, None, "nobody is left to borrow from: all 12 clients"),
]


@pytest.mark.parametrize(("name", "classes", "clients", "samples", "groups", "message"), IMPOSSIBLE)
def test_impossible_partitions_are_refused(
    name: str, classes: int, clients: int, samples: int, groups: int | None, message: str
):
    with pytest.raises(ValueError, match=message):
        parse_partition(name).check(classes, clients, samples, groups)


POSSIBLE = [
    ("iid", 10, 10, 10, None),
    ("classes-10", 10, 10, 1000, None),
    ("covering-10", 100, 10, 1000, None),
    ("dir-0.1", 10, 100, 1000, None),
    ("dirplain-0.1", 2, 5, 5, None),
    ("dirplain-0.1-minimum0", 2, 6, 5, None),
    ("sampled-10-10", 10, 10, 10, None),
    ("roles-4", 80, 100, 1000, 4),
    ("domains-4", 7, 4, 1000, 4),
    ("onedomain-3", 7, 2, 1000, 4),
    ("iid-overlap0.1x11", 5, 12, 1200, None),
]


@pytest.mark.parametrize(("name", "classes", "clients", "samples", "groups"), POSSIBLE)
def test_barely_possible_partitions_are_not_refused(
    name: str, classes: int, clients: int, samples: int, groups: int | None
):
    parse_partition(name).check(classes, clients, samples, groups)


@pytest.mark.parametrize(
    ("name", "share", "scaled"),
    [
        ("dir-0.1", 0.5, "dir-0.1-minimum5"),
        ("dir-0.1", 0.01, "dir-0.1-minimum1"),
        ("dir-0.1", 1.0, "dir-0.1"),
        ("dirplain-0.1-minimum0", 0.5, "dirplain-0.1-minimum0"),
        ("dir-0.1-overlap0.2x2", 0.5, "dir-0.1-minimum5-overlap0.2x2"),
        ("classes-2", 0.5, "classes-2"),
    ],
)
def test_limits_that_count_samples_shrink_with_the_share(name: str, share: float, scaled: str):
    assert str(parse_partition(name).scaled(share)) == scaled


LARGE = ["iid", "classes-2", "covering-2", "dirplain-0.5", "dir-0.5-minimum1", "quantity-5"]
LARGE += ["sampled-1-5", "iid-overlap0.2x20", "roles-5", "domains-2", "onedomain-3"]


@pytest.mark.alone
@pytest.mark.parametrize("name", LARGE)
def test_a_million_samples_are_dealt_to_ten_thousand_clients_in_seconds(name: str):
    """Measured on one core: 0.04 s (iid) to 0.3 s."""
    rng, scheme = np.random.default_rng(0), parse_partition(name)
    pool = Pool(rng.integers(0, 10, 1_000_000), rng.integers(0, 5000, 1_000_000))
    start = time.perf_counter()
    scheme.borrow(scheme.deal(pool, 10_000, rng), rng)
    assert time.perf_counter() - start < 5
