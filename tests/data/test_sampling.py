"""Shares of samples are stratified by class and the same for every seed."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cohort.data.sampling import draw_share, draw_stratified

# class sizes, samples wanted, samples of each class by largest remainders (worked out by hand)
BY_HAND = {
    "exact": ([10, 20, 30], 6, [1, 2, 3]),  # 1, 2, 3
    "one left over": ([5, 3, 2], 4, [2, 1, 1]),  # 2.0, 1.2, 0.8: the last has the largest remainder
    "two left over": ([7, 7, 6], 10, [4, 3, 3]),  # 3.5, 3.5, 3.0: equal remainders, the first class
    "equal remainders": ([1, 1, 1, 1], 2, [1, 1, 0, 0]),  # 0.5 each: the first two
    "small class loses": ([97, 2, 1], 10, [10, 0, 0]),  # 9.7, 0.2, 0.1
    "a class without samples": ([4, 0, 6], 5, [2, 0, 3]),  # 2, 0, 3
    "everything": ([3, 1, 2], 6, [3, 1, 2]),
    "nothing": ([3, 1, 2], 0, [0, 0, 0]),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_largest_remainders_by_hand(case: str):
    sizes, count, expected = BY_HAND[case]
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    chosen = draw_stratified(labels, count, "test")
    assert np.bincount(labels[chosen], minlength=len(sizes)).tolist() == expected


@settings(max_examples=100, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    part=st.fractions(0, 1),
    seed=st.integers(0, 100),
)
def test_proportional_ascending_and_distinct(sizes: list[int], part: Fraction, seed: int):
    """Each class is off its exact share by less than one sample."""
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    count = int(part * len(labels))
    chosen = draw_stratified(labels, count, "test")
    assert len(chosen) == count
    assert (np.diff(chosen) > 0).all()
    result = np.bincount(labels[chosen], minlength=len(sizes)).tolist()
    assert all(
        abs(taken - Fraction(size * count, len(labels))) < 1
        for taken, size in zip(result, sizes, strict=True)
    )


def test_share_is_the_same_for_every_call_and_another_for_another_purpose():
    labels = np.random.default_rng(0).integers(0, 10, 500)
    once = draw_share(labels, 0.3, "train share")
    np.random.seed(7)
    np.testing.assert_array_equal(once, draw_share(labels, 0.3, "train share"))
    assert len(once) == 150
    assert not np.array_equal(once, draw_share(labels, 0.3, "test share"))
