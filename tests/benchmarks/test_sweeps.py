"""Medians and ratios against hand-computed numbers."""

from __future__ import annotations

import time

import pytest

from benchmarks.processes import Failed
from benchmarks.sweeps import Summary, time_interleaved, times_faster
from benchmarks.tables import Goal, number, table


class Sleeper:
    """A variant that sleeps in each round, and fails in round number `fails`."""

    def __init__(self, seconds: float, fails: int = 0):
        self.seconds, self.fails, self.rounds = seconds, fails, 0

    def run(self) -> float:
        self.rounds += 1
        if self.rounds == self.fails:
            raise Failed("on purpose")
        started = time.perf_counter()
        time.sleep(self.seconds)
        return time.perf_counter() - started


def test_summary_by_hand():
    assert Summary.of([5.0, 1.0, 4.0, 2.0, 3.0]) == Summary(3.0, 1.0, (2.0, 4.0))
    assert Summary.of([7.0]) == Summary(7.0, 7.0, (7.0, 7.0))


def test_speedup_is_the_median_ratio_within_sweeps():
    """The ratios 2, 4 and 1.5 have median 2, while the ratio of the medians is 9 / 6."""
    assert times_faster([2.0, 40.0, 9.0], [1.0, 10.0, 6.0]) == 2.0


def test_equal_variants_are_equally_fast():
    seconds, failures = time_interleaved(
        {"one": Sleeper(0.05), "other": Sleeper(0.05), "slow": Sleeper(0.15)}, 5
    )
    assert not failures
    assert times_faster(seconds["one"], seconds["other"]) == pytest.approx(1, abs=0.2)
    assert times_faster(seconds["slow"], seconds["one"]) == pytest.approx(3, abs=0.5)


def test_the_warm_up_is_not_counted():
    variants = {"one": Sleeper(0), "other": Sleeper(0)}
    seconds, _ = time_interleaved(variants, 3)
    assert [len(taken) for taken in seconds.values()] == [3, 3] and variants["one"].rounds == 4
    seconds, _ = time_interleaved(variants, 3, warm=False)
    assert len(seconds["one"]) == 3 and variants["one"].rounds == 7


def test_other_variants_continue_after_a_failure():
    seconds, failures = time_interleaved({"good": Sleeper(0), "bad": Sleeper(0, fails=3)}, 4)
    assert len(seconds["good"]) == 4 and "bad" not in seconds
    assert failures == {"bad": "on purpose"}


@pytest.mark.parametrize(
    ("measured", "at_least", "verdict"),
    [
        (1.8, True, "reached"),
        (1.79, True, "not reached"),
        (None, True, "not measured"),
        (1.8, False, "reached"),
        (1.81, False, "not reached"),
    ],
)
def test_verdicts(measured: float | None, at_least: bool, verdict: str):
    assert Goal("", 1.8, measured, at_least).verdict == verdict


def test_numbers_have_three_significant_digits():
    values = (0.0, 0.04567, 1.0, 12.345, 99.96, 1234.5, 4.2e-8, None)
    printed = ["0.00", "0.0457", "1.00", "12.3", "100", "1234", "4.2e-08", "-"]
    assert [number(value) for value in values] == printed


def test_tables_are_markdown():
    assert table(["a", "long"], [["xyz", "1"]]).splitlines() == [
        "| a   | long |",
        "|-----|------|",
        "| xyz | 1    |",
    ]
