"""Draws, shares that are rounded, and what Oort explores, by hand."""

import numpy as np
import pytest

from cohort.data.sampling import floor_share
from cohort.selection.entropy import Entropy
from cohort.selection.oort import Oort, OortFedScale
from cohort.selection.pools import PowD
from cohort.selection.selector import View
from cohort.selection.simple import top_clients
from tests.selection.test_oort import view


def test_clients_without_a_value_come_last():
    values = np.array([-1.0, np.nan, -3.0, np.inf, np.nan])
    for seed in range(20):
        top = top_clients(values, np.arange(10, 15), 5, np.random.default_rng(seed))
        assert top[:3].tolist() == [13, 10, 12] and set(top[3:]) == {11, 14}


@pytest.mark.parametrize(
    ("multiple", "cohort", "size"), [(1.15, 20, 23), (1.5, 5, 8), (2.0, 10, 12), (1.0, 4, 4)]
)
def test_a_pool_is_a_rounded_multiple_of_the_cohort(multiple: float, cohort: int, size: int):
    """1.15 * 20 is 22.999... in binary; there are twelve clients where 20 were asked for."""
    assert PowD(pool=multiple).pool_size(12 if size == 12 else 100, cohort) == size


def test_the_capacity_of_the_buffer_is_rounded():
    """0.29 of 100 clients are 28.999... in binary."""
    many = View(clients=100, cohort=40, sizes=np.ones(100))
    empty = {"buffer": np.empty(0, dtype=np.int64)}
    state = Entropy(buffer=0.29).observe(empty, np.arange(40), {}, many)
    assert state["buffer"].tolist() == list(range(11, 40))
    assert [floor_share(100, 0.29), floor_share(10, 1 - 0.9), floor_share(10, 0.19)] == [29, 1, 1]


def test_how_many_are_explored_in_each_round():
    """All but int((1 - epsilon) * 10), with 0.9 * 0.98 ** (round - 1), 0.2 at least: nobody is known
    before the first round."""
    reports = {"expected_duration": np.ones(1000)}
    many = View(clients=1000, cohort=10, sizes=np.ones(1000), reports=reports)
    selector, rng = Oort(), np.random.default_rng(0)
    state, new = selector.begin(many, rng), []
    for _ in range(90):
        cohort = selector.select(state, np.arange(1000), many, rng)
        new.append(int(np.isnan(state["utility"][cohort]).sum()))
        reports = {"loss_norm": rng.random(10), "duration": np.ones(10)}
        state = selector.observe(state, cohort, reports, many)
    expected = [10 - int((1 - max(0.9 * 0.98**played, 0.2)) * 10) for played in range(1, 90)]
    assert new == [10, *expected]


def test_nobody_is_slow_beyond_the_hundredth_percentile():
    state = Oort().begin(view(), np.random.default_rng(0)) | {"percentile": np.array([130.0])}
    assert Oort().preferred_duration(state) == view().reports["expected_duration"].max()


@pytest.mark.parametrize(
    ("percentile", "earlier", "later", "expected"),
    [
        (30, 10, 11, 35),
        (97, 10, 9, 100),
        (30, 10, 12, 30),
        (30, 10, 60, 25),
        (7, 10, 60, 5),
        (5, 10, 60, 5),
    ],
)
def test_the_pacer_of_fedscale(percentile: int, earlier: float, later: float, expected: int):
    """Up to a tenth is flat, five times is sharp; it stays between a step and 100."""
    assert OortFedScale().next_percentile(percentile, earlier, later) == expected


def test_more_than_ten_times_those_that_are_drawn_are_admitted():
    """Of three clients with utility 1 and 27 far below 5 % of that, ten more than are drawn enter:
    the best eleven for one place, twenty-one for two."""
    utilities = np.array([*[1.0] * 3, *np.linspace(0.002, 0.001, 27)])
    assert OortFedScale().admitted_positions(utilities, 1).tolist() == list(range(11))
    assert OortFedScale().admitted_positions(utilities, 2).tolist() == list(range(21))
    assert OortFedScale().admitted_positions(np.ones(15), 1).tolist() == list(range(15))


def test_the_share_of_liars_is_rounded():
    """0.29 * 100 is 28.999... in binary."""
    counts = np.tile([4, 0], (100, 1))
    reported = Entropy(liars=0.29).reported_counts(counts, np.random.default_rng(0))
    assert (reported == 2).all(axis=1).sum() == 29
