"""Overlapping clients: how much they borrow and from whom, and that nothing else is duplicated."""

from __future__ import annotations

import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.partition import Pool, parse_partition
from cohort.partition.schemes import Scheme, share_evenly

LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(5), [400, 300, 250, 150, 100]))
NAMES = [
    *(
        "iid-overlap0.2x2",
        "iid-overlap0.5x9",
        "iid-overlap0.1+0.3",
        "classes-2-overlap0.3x4",
        "sampled-1-3-overlap0.05+0.1+0.4",
    ),
    *("dir-0.5-overlap0.2x3", "dirplain-5-overlap0.3x1", "quantity-5-overlap0.25x2"),
]
Parts = list[np.ndarray]


def dealt(
    name: str, seed: int, labels: np.ndarray = LABELS, clients: int = 12
) -> tuple[Scheme, Parts, Parts]:
    """The scheme, what each client keeps, and what it borrows."""
    scheme, rng = parse_partition(name), np.random.default_rng(seed)
    return scheme, *scheme.borrow(scheme.deal(Pool(labels), clients, rng), rng)


def test_figure_1_of_peco():
    """An overlapping client with 3 samples of its own shares 3 more, one with each of three
    clients: a ratio of 50 %."""
    _, own, borrowed = dealt("iid-overlap0.5x1", 0, np.zeros(12, dtype=np.int64), 4)
    (client,) = (index for index, extra in enumerate(borrowed) if len(extra))
    assert [len(part) for part in own] == [3, 3, 3, 3]
    assert len(borrowed[client]) == 3
    shared = [len(np.intersect1d(part, borrowed[client])) for part in own]
    assert shared == [0 if index == client else 1 for index in range(4)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_an_overlapping_client_borrows_its_ratio(name: str, seed: int):
    scheme, own, borrowed = dealt(name, seed)
    overlapping = [index for index, extra in enumerate(borrowed) if len(extra)]
    assert len(overlapping) == len(scheme.ratios)
    unmatched = list(scheme.ratios)
    for client in overlapping:
        unique = len(own[client])
        fits = [
            ratio
            for ratio in unmatched
            if len(borrowed[client]) == round(ratio / (1 - ratio) * unique)
        ]
        achieved = len(borrowed[client]) / (unique + len(borrowed[client]))
        assert min(abs(achieved - ratio) for ratio in fits) <= 0.5 / unique
        unmatched.remove(fits[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_the_declared_overlap_is_the_only_duplication(name: str, seed: int):
    """Everything is dealt once; what is borrowed was dealt to a client that borrows nothing, and
    nobody borrows a sample twice."""
    _, own, borrowed = dealt(name, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate(own)), np.arange(len(LABELS)))
    of_regular = np.concatenate(
        [part for part, extra in zip(own, borrowed, strict=True) if not len(extra)]
    )
    for extra in borrowed:
        assert len(np.unique(extra)) == len(extra)
        assert np.isin(extra, of_regular).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_regular_clients_lend_evenly(name: str, seed: int):
    """Two clients lend numbers that differ by more than one only where the smaller one lends all
    that it has."""
    _, own, borrowed = dealt(name, seed)
    regular = [part for part, extra in zip(own, borrowed, strict=True) if not len(extra)]
    for extra in (extra for extra in borrowed if len(extra)):
        lent = np.array([len(np.intersect1d(part, extra)) for part in regular])
        exhausted = lent == [len(part) for part in regular]
        assert (lent[~exhausted] >= lent.max() - 1).all()


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.data())
@settings(derandomize=True)
def test_share_evenly(available: list[int], data: st.DataObject):
    total = data.draw(st.integers(0, sum(available)))
    gives = share_evenly(total, np.array(available))
    assert gives.sum() == total
    assert (gives >= 0).all() and (gives <= available).all()
    assert (gives[gives < available] >= gives.max() - 1).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_dealt_is_what_the_scheme_deals_without_overlap(name: str):
    """Studies over overlap ratios thereby compare one federation with more and less overlap."""
    _, own, _ = dealt(name, 3)
    without = name.partition("-overlap")[0]
    for part, other in zip(own, dealt(without, 3)[1], strict=True):
        np.testing.assert_array_equal(part, other)


def test_the_first_overlapping_clients_are_the_same_for_more_of_them():
    chosen = []
    for count in range(1, 11):
        _, _, borrowed = dealt(f"iid-overlap0.2x{count}", 4)
        chosen.append({index for index, extra in enumerate(borrowed) if len(extra)})
    assert all(fewer < more for fewer, more in pairwise(chosen))


def test_every_client_overlaps_equally_often():
    """Two of twelve clients in 1,200 deals: 200 each, give or take sqrt(1200 * 1/6 * 5/6) =
    12.9."""
    times = np.zeros(12)
    for seed in range(1200):
        times += [len(extra) > 0 for extra in dealt("iid-overlap0.2x2", seed, LABELS[:60])[2]]
    assert times.sum() == 2400
    assert np.abs(times - 200).max() < 4 * 12.9


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_overlap_other_seed_another(name: str):
    once, again, other = (np.concatenate(dealt(name, seed)[2]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(np.sort(once), np.sort(other))


def test_a_scheme_without_overlap_borrows_nothing():
    assert [len(extra) for extra in dealt("dir-5", 0)[2]] == [0] * 12


def test_nobody_to_borrow_from_is_refused():
    with pytest.raises(
        ValueError, match="12 overlapping clients of 12 leave nobody to borrow from"
    ):
        parse_partition("iid-overlap0.1x12").check(5, 12, 1200)
    parse_partition("iid-overlap0.1x11").check(5, 12, 1200)


def test_more_than_the_others_hold_is_refused():
    with pytest.raises(
        ValueError, match="a client of 100 samples should borrow 900, but the others hold 200"
    ):
        dealt("iid-overlap0.9x10", 0)


def test_what_the_base_scheme_refuses_is_refused():
    with pytest.raises(ValueError, match="999 samples cannot give 100 clients 10 each"):
        parse_partition("dir-0.1-overlap0.2x2").check(10, 100, 999)


def test_a_share_scales_the_base_scheme():
    assert (
        str(parse_partition("dir-0.1-overlap0.2x2").scaled(0.5)) == "dir-0.1-minimum5-overlap0.2x2"
    )


def test_both_science_versions_count(monkeypatch: pytest.MonkeyPatch):
    scheme = parse_partition("dir-0.1-overlap0.2x2")
    monkeypatch.setattr(type(scheme), "science", 3)
    assert scheme.versions() == {"partition:dir": 1, "partition:overlap": 3}
    assert parse_partition("dir-0.1").versions() == {"partition:dir": 1}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("iid-overlap0.2x2", 2),
        ("iid-overlap0.1+0.3", 2),
        ("iid-overlap0x2-replace", 2),
        ("iid-overlap0x2", 1),
    ],
)
def test_held_out_samples_raise_the_version_where_they_meet_borrowing(name: str, version: int):
    assert parse_partition(name).versions(holdout=0.1) == {
        "partition:iid": 1,
        "partition:overlap": version,
    }
    assert parse_partition(name).versions() == {"partition:iid": 1, "partition:overlap": 1}


REPLACING = [f"{name}-replace" for name in NAMES]


@pytest.mark.parametrize("name", REPLACING)
@pytest.mark.parametrize("seed", range(3))
def test_with_replace_a_client_keeps_its_size(name: str, seed: int):
    """It borrows its ratio of what it was dealt, from clients that borrow nothing and keep all they
    have, and gives up as many samples."""
    scheme, kept, borrowed = dealt(name, seed)
    whole = dealt(name.partition("-overlap")[0], seed)[1]
    unmatched = list(scheme.ratios)
    for part, rest, extra in zip(whole, kept, borrowed, strict=True):
        assert len(rest) + len(extra) == len(part)
        assert np.isin(rest, part).all() and len(np.unique(rest)) == len(rest)
        if len(extra):
            fits = [ratio for ratio in unmatched if len(extra) == round(ratio * len(part))]
            unmatched.remove(fits[0])
    assert not unmatched
    regular = np.concatenate(
        [part for part, extra in zip(whole, borrowed, strict=True) if not len(extra)]
    )
    assert all(
        np.isin(extra, regular).all() and len(np.unique(extra)) == len(extra) for extra in borrowed
    )


@pytest.mark.parametrize("name", REPLACING)
def test_with_replace_nobody_holds_what_was_given_up(name: str):
    _, kept, borrowed = dealt(name, 1)
    held = np.unique(np.concatenate([*kept, *borrowed]))
    assert len(LABELS) - len(held) == sum(map(len, borrowed)) > 0


def test_with_replace_the_overlapping_clients_are_those_without():
    for seed in range(5):
        with_it, without = (
            dealt(name, seed)[2] for name in ("iid-overlap0.2x3-replace", "iid-overlap0.2x3")
        )
        assert [len(extra) > 0 for extra in with_it] == [len(extra) > 0 for extra in without]


def test_which_samples_are_given_up_is_chance():
    """A client gives up half of its six samples, each of them in half of the deals."""
    kept_by_first, times = np.zeros(12), 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        kept, borrowed = parse_partition("iid-overlap0.5x1-replace").borrow(
            [np.arange(6), np.arange(6, 12)], rng
        )
        if len(borrowed[0]):
            kept_by_first[kept[0]] += 1
            times += 1
    assert kept_by_first[6:].sum() == 0 and kept_by_first.sum() == 3 * times
    assert np.abs(kept_by_first[:6] - times / 2).max() < 4 * np.sqrt(times / 4)


@pytest.mark.parametrize("name", NAMES)
def test_who_overlaps_is_who_borrows(name: str):
    scheme, rng = parse_partition(name), np.random.default_rng(1)
    parts = scheme.deal(Pool(LABELS), 12, rng)
    chosen = scheme.overlapping_clients(12, copy.deepcopy(rng))
    borrowed = scheme.borrow(parts, rng)[1]
    assert sorted(chosen) == [index for index, extra in enumerate(borrowed) if len(extra)]


def test_a_ratio_of_zero_chooses_clients_that_borrow_nothing():
    scheme, own, borrowed = dealt("iid-overlap0x3", 2)
    assert sum(map(len, borrowed)) == 0
    for part, without in zip(own, dealt("iid", 2)[1], strict=True):
        np.testing.assert_array_equal(part, without)
    assert len(set(scheme.overlapping_clients(12, np.random.default_rng(0)))) == 3
