"""What holds for every scheme: each sample is dealt to exactly one client, and chance comes from the generator alone.

What an overlap adds to that is in test_overlap.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.partition import SCHEMES, parse_name
from cohort.partition.scheme import Scheme

NAMES = [
    *("iid", "classes-1", "classes-2", "classes-4", "sampled-1-1", "sampled-1-3", "sampled-4-4", "quantity-5-minimum2"),
    *("dir-0.3", "dir-5-minimum2", "dirplain-0.5", "dirplain-5", "classes-2-overlap0.2x2"),
]
LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(6), [300, 250, 200, 150, 200, 100]))


@st.composite
def federations(draw: st.DrawFn) -> tuple[np.ndarray, int, int]:
    """Shuffled labels of 4 to 6 classes, enough samples of each, a number of clients, a seed."""
    clients = draw(st.integers(6, 12))
    per_class = draw(st.lists(st.integers(clients, 80), min_size=4, max_size=6))
    seed = draw(st.integers(0, 10_000))
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(per_class)), per_class)), clients, seed


def test_names_exercise_every_scheme():
    assert {type(parse_name(name)) for name in NAMES} == set(SCHEMES.values())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dir-0.3"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(federation=federations())
def test_each_sample_goes_to_exactly_one_client(name: str, federation: tuple[np.ndarray, int, int]):
    labels, clients, seed = federation
    assert_deals(parse_name(name), labels, clients, seed)


@pytest.mark.parametrize("seed", range(10))
def test_each_sample_goes_to_exactly_one_client_at_strong_skew(seed: int):
    assert_deals(parse_name("dir-0.3"), LABELS, 8, seed)


def assert_deals(scheme: Scheme, labels: np.ndarray, clients: int, seed: int) -> None:
    parts = scheme.deal(labels, clients, np.random.default_rng(seed))
    assert len(parts) == clients
    assert min(len(part) for part in parts) >= getattr(scheme, "minimum", 1)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_parts_other_seed_other_parts(name: str):
    once, again, other = (parse_name(name).deal(LABELS, 8, np.random.default_rng(seed)) for seed in (1, 1, 2))
    for part, same in zip(once, again, strict=True):
        np.testing.assert_array_equal(part, same)
    assert any(not np.array_equal(np.sort(part), np.sort(changed)) for part, changed in zip(once, other, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_left_alone_and_global_chance_has_no_say(name: str):
    labels = LABELS.copy()
    once = parse_name(name).deal(labels, 8, np.random.default_rng(1))
    np.random.seed(99)
    again = parse_name(name).deal(labels, 8, np.random.default_rng(1))
    np.testing.assert_array_equal(np.concatenate(once), np.concatenate(again))
    np.testing.assert_array_equal(labels, LABELS)


IMPOSSIBLE = {
    "more clients than samples": ("iid", 10, 11, 10, "10 samples cannot be dealt to 11 clients"),
    "more classes per client than there are": ("classes-11", 10, 100, 1000, "11 classes where there are only 10"),
    "fewer clients than classes": ("classes-2", 10, 9, 1000, "9 clients leave some of the 10 classes unheld"),
    "classes: more clients than samples": ("classes-1", 2, 11, 10, "10 samples cannot be dealt to 11 clients"),
    "minimum cannot be reached": ("dir-0.1", 10, 100, 999, "999 samples cannot give 100 clients 10 each"),
    "more classes drawn than there are": ("sampled-1-11", 10, 100, 1000, "cannot draw 11 classes where there are only 10"),
    "numbers of classes in the wrong order": ("sampled-3-2", 10, 100, 1000, "3 is more than 2; the smaller number"),
    "sampled: more clients than samples": ("sampled-1-2", 2, 11, 10, "10 samples cannot be dealt to 11 clients"),
    "quantity minimum cannot be reached": ("quantity-1", 10, 100, 999, "999 samples cannot give 100 clients 10 each"),
    "plain minimum cannot be reached": ("dirplain-0.1", 10, 100, 99, "99 samples cannot give 100 clients 1 each"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_partitions_are_refused(case: str):
    name, classes, clients, samples, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        parse_name(name).check(classes, clients, samples)


POSSIBLE = [
    ("iid", 10, 10, 10),
    ("classes-10", 10, 10, 1000),
    ("classes-2", 10, 10, 1000),
    ("dir-0.1", 10, 100, 1000),
    ("dirplain-0.1", 2, 5, 5),
    ("sampled-10-10", 10, 10, 10),
    ("quantity-1", 10, 100, 1000),
]


@pytest.mark.parametrize(("name", "classes", "clients", "samples"), POSSIBLE)
def test_the_last_possible_partition_is_not_refused(name: str, classes: int, clients: int, samples: int):
    parse_name(name).check(classes, clients, samples)


def test_limits_that_count_samples_shrink_with_the_share():
    assert str(parse_name("dir-0.1").scaled(0.5)) == "dir-0.1-minimum5"
    assert str(parse_name("dir-0.1").scaled(0.01)) == "dir-0.1-minimum1"
    assert str(parse_name("dir-0.1").scaled(1.0)) == "dir-0.1"
    assert str(parse_name("quantity-0.5").scaled(0.5)) == "quantity-0.5-minimum5"
    assert str(parse_name("classes-2").scaled(0.5)) == "classes-2"
    assert str(parse_name("iid").scaled(0.5)) == "iid"
