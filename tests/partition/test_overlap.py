"""Overlapping clients: how much they borrow and from whom, and that nothing else is duplicated."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.partition import Pool, parse_partition
from cohort.partition.schemes import Scheme, share_evenly

LABELS = np.random.default_rng(5).permutation(np.repeat(np.arange(5), [400, 300, 250, 150, 100]))
NAMES = ["iid-overlap0.2x2", "iid-overlap0.5x9", "iid-overlap0.1+0.3", "classes-2-overlap0.3x4"]
NAMES += ["sampled-1-3-overlap0.05+0.1+0.4", "dir-0.5-overlap0.2x3", "dirplain-5-overlap0.3x1"]
NAMES += ["quantity-5-overlap0.25x2"]
REPLACING = [f"{name}-replace" for name in NAMES]
Parts = list[np.ndarray]


def dealt(
    name: str, seed: int, labels: np.ndarray = LABELS, clients: int = 12
) -> tuple[Scheme, Parts, Parts]:
    """The scheme, what each client keeps, and what it borrows."""
    scheme, rng = parse_partition(name), np.random.default_rng(seed)
    return scheme, *scheme.borrow(scheme.deal(Pool(labels), clients, rng), rng)[:2]


@pytest.mark.parametrize("name", [*NAMES, *REPLACING])
@pytest.mark.parametrize("seed", range(3))
def test_an_overlapping_client_borrows_its_ratio_and_nothing_else_is_duplicated(
    name: str, seed: int
):
    """What is dealt is what the scheme deals without overlap. What is borrowed, no sample twice,
    was dealt to clients that borrow nothing, which lend numbers that differ by more than one only
    where the smaller one lends all that it has. With `replace` a client gives up as many samples,
    which nobody holds then."""
    scheme, retained, borrowed = dealt(name, seed)
    whole = dealt(name.partition("-overlap")[0], seed)[1]
    replaces, unmatched = name.endswith("replace"), list(scheme.ratios)
    regular = [part for part, extra in zip(retained, borrowed, strict=True) if not len(extra)]
    for part, own, extra in zip(whole, retained, borrowed, strict=True):
        assert len(np.unique(extra)) == len(extra)
        if not replaces or not len(extra):
            np.testing.assert_array_equal(own, part)
        if len(extra):
            holds = len(own) + len(extra)
            assert holds == len(part) + (0 if replaces else len(extra))
            assert np.isin(own, part).all() and len(np.unique(own)) == len(own)
            odds = {ratio: ratio if replaces else ratio / (1 - ratio) for ratio in unmatched}
            ratio = next(r for r in unmatched if len(extra) == round(odds[r] * len(part)))
            assert abs(len(extra) / holds - ratio) <= 0.5 / len(part)
            unmatched.remove(ratio)
            lent = np.array([len(np.intersect1d(lender, extra)) for lender in regular])
            exhausted = lent == [len(lender) for lender in regular]
            assert lent.sum() == len(extra) and (lent[~exhausted] >= lent.max() - 1).all()
    assert not unmatched
    nobodys = len(LABELS) - len(np.unique(np.concatenate([*retained, *borrowed])))
    assert nobodys == (sum(map(len, borrowed)) if replaces else 0)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.data())
@settings(derandomize=True)
def test_share_evenly(available: list[int], data: st.DataObject):
    total = data.draw(st.integers(0, sum(available)))
    gives = share_evenly(total, np.array(available))
    assert gives.sum() == total
    assert (gives >= 0).all() and (gives <= available).all()
    assert (gives[gives < available] >= gives.max() - 1).all()


def test_the_first_overlapping_clients_are_the_same_for_more_of_them_and_with_replace():
    chosen = []
    for count in range(1, 11):
        _, _, borrowed = dealt(f"iid-overlap0.2x{count}", 4)
        replacing = dealt(f"iid-overlap0.2x{count}-replace", 4)[2]
        chosen.append({index for index, extra in enumerate(borrowed) if len(extra)})
        assert chosen[-1] == {index for index, extra in enumerate(replacing) if len(extra)}
    assert all(fewer < more for fewer, more in pairwise(chosen))


def test_every_client_overlaps_equally_often():
    """Two of twelve clients in 1,200 deals: 200 each, give or take sqrt(1200/6 * 5/6) = 12.9."""
    times = np.zeros(12)
    for seed in range(1200):
        times += [len(extra) > 0 for extra in dealt("iid-overlap0.2x2", seed, LABELS[:60])[2]]
    assert times.sum() == 2400 and np.abs(times - 200).max() < 4 * 12.9


def test_which_samples_are_given_up_is_chance():
    """A client gives up half of its six samples, each of them in half of the deals."""
    kept_by_first, times = np.zeros(12), 0
    scheme, parts = parse_partition("iid-overlap0.5x1-replace"), [np.arange(6), np.arange(6, 12)]
    for seed in range(1000):
        retained, borrowed, _ = scheme.borrow(parts, np.random.default_rng(seed))
        if len(borrowed[0]):
            kept_by_first[retained[0]] += 1
            times += 1
    assert kept_by_first[6:].sum() == 0 and kept_by_first.sum() == 3 * times
    assert np.abs(kept_by_first[:6] - times / 2).max() < 4 * np.sqrt(times / 4)


@pytest.mark.parametrize("name", NAMES)
def test_who_overlaps_is_who_borrows_and_is_drawn(name: str):
    scheme, rng = parse_partition(name), np.random.default_rng(1)
    parts = scheme.deal(Pool(LABELS), 12, rng)
    _, borrowed, chosen = scheme.borrow(parts, rng)
    assert sorted(chosen) == [index for index, extra in enumerate(borrowed) if len(extra)]
    once, again, other = (np.concatenate(dealt(name, seed)[2]) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(np.sort(once), np.sort(other))


def test_a_ratio_of_zero_chooses_clients_that_borrow_nothing():
    scheme, own, borrowed = dealt("iid-overlap0x3", 2)
    assert sum(map(len, borrowed)) == sum(map(len, dealt("dir-5", 0)[2])) == 0
    for part, without in zip(own, dealt("iid", 2)[1], strict=True):
        np.testing.assert_array_equal(part, without)
    assert len(set(scheme.borrow(own, np.random.default_rng(0))[2])) == 3


def test_more_than_the_others_hold_is_refused():
    message = "a client should borrow 900 samples, the others hold 200"
    with pytest.raises(ValueError, match=message):
        dealt("iid-overlap0.9x10", 0)


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
    iid = {"partition:iid": 1}
    assert parse_partition(name).versions(holdout=0.1) == iid | {"partition:overlap": version}
    assert parse_partition(name).versions() == iid | {"partition:overlap": 1}
