"""Rounds and ranges of rounds: what they mean, and how they scale with a run."""

from __future__ import annotations

import math

import jsonschema
import pandas as pd
import pytest

from cohort.core.components import schema_of
from cohort.core.errors import UserError
from cohort.results.at import at_in_words, check_at, rounds_of, scaled_at
from cohort.results.series import value_per_cell
from cohort.results.tables.spec import Table
from tests.results.test_series import LABELS, frame

EACH = {round: round / 100 for round in range(1, 41)}


def value(accuracy: dict[int, float], at: int | str, share: float = 1.0) -> float:
    metrics = frame(("a", "done", LABELS, accuracy)).assign(share=share)
    (result,) = value_per_cell(metrics, "test_accuracy", at)["value"]
    return float(result)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("21-30", 0.255),  # the mean of 0.21 to 0.30
        ("40-40", 0.40),
        (30, 0.30),
        ("30", 0.30),
        (1, 0.01),
    ],
)
def test_rounds_of_a_run_that_is_evaluated_in_each(at: int | str, expected: float):
    assert value(EACH, at) == pytest.approx(expected, rel=1e-12)


def test_a_round_is_the_last_evaluation_up_to_it():
    every_seven = {round: float(round) for round in range(7, 50, 7)}
    assert value(every_seven, 30) == 28
    assert value(every_seven, "21-30") == (21 + 28) / 2


def test_a_run_that_ended_early_has_no_value():
    assert value(dict.fromkeys(range(1, 28), 0.5), "21-30") == 0.5  # nine tenths of 30
    assert math.isnan(value(dict.fromkeys(range(1, 27), 0.5), "21-30"))
    assert math.isnan(value(dict.fromkeys(range(1, 27), 0.5), 30))
    assert math.isnan(value({}, "21-30"))


def test_rounds_scale_with_each_run():
    """A run of a fifth of its rounds has rounds 5 and 6 for 21 to 30; one of a fiftieth has its
    first round for everything up to 50."""
    assert value(EACH, "21-30", 0.2) == pytest.approx((0.05 + 0.06) / 2)
    assert value(EACH, 30, 0.2) == 0.06
    assert value({1: 0.3, 2: 0.9}, "21-30", 0.02) == 0.3


def test_runs_of_different_shares_in_one_table():
    full, short = frame(("a", "done", LABELS, EACH)), frame(("b", "done", LABELS, EACH))
    both = pd.concat([full.assign(share=1.0), short.assign(share=0.1)])
    values = value_per_cell(both, "test_accuracy", "21-30")
    assert values["value"].tolist() == pytest.approx([0.255, 0.03])


@pytest.mark.parametrize(
    ("at", "share", "expected"),
    [
        ("21-30", 1.0, (21, 30)),
        ("21-30", 0.5, (11, 15)),
        ("21-30", 0.01, (1, 1)),
        ("30-39", 0.29, (9, 11)),
        ("101-200", 0.29, (30, 58)),
        (30, 0.1, (1, 3)),
        ("last", 0.5, None),
        ("last-10", 0.5, None),
    ],
)
def test_rounds_of(at: int | str, share: float, expected: tuple[int, int] | None):
    assert rounds_of(at, share) == expected


def test_every_bucket_of_a_run_scales_to_another_one():
    """Ten ranges of ten rounds cover a tenth, a fifth and a half of a run, each round once."""
    for share in (0.1, 0.2, 0.5, 1.0):
        ranges = [rounds_of(f"{10 * k + 1}-{10 * k + 10}", share) for k in range(10)]
        rounds = [round for one in ranges if one for round in range(one[0], one[1] + 1)]
        assert rounds == list(range(1, round(100 * share) + 1))


def test_in_words():
    assert scaled_at("21-30", 0.5) == "11-15"
    assert scaled_at(30, 0.5) == 15 and scaled_at("max", 0.5) == "max"
    assert at_in_words("21-30") == "mean of rounds 21 to 30"
    assert at_in_words(30) == at_in_words("30") == "evaluation of round 30"
    assert at_in_words("last-10") == "mean of the last ten rounds"


def test_what_cannot_be_reached_is_refused():
    check_at("21-30", 30, "runs")
    check_at("last", 1, "runs")
    with pytest.raises(UserError, match=r"^at is 21-30, but runs end after 20 rounds$"):
        check_at("21-30", 20, "runs")
    with pytest.raises(UserError, match=r"^at is '30-21', a range that ends before it begins$"):
        check_at("30-21", 100, "runs")


@pytest.mark.parametrize("at", ["21-30", 30, "last", "last-10"])
def test_the_schema_takes(at: int | str):
    jsonschema.validate({"metric": "test_accuracy", "rows": ["J"], "at": at}, schema_of(Table))


@pytest.mark.parametrize("at", ["21-", "-30", 0, "0-10", "median", "first 0.2", 1.5])
def test_the_schema_refuses(at: object):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"metric": "test_accuracy", "rows": ["J"], "at": at}, schema_of(Table))


def test_further_measures_may_be_ranges():
    table = Table(
        metric="test_accuracy", rows=["J"], at="21-30", also=["test_loss 31-40", "test_loss"]
    )
    assert [measure.at for measure in table.measures()] == ["21-30", "31-40", "21-30"]
    table.check()
    with pytest.raises(UserError, match="also: 'meen' is not a value of at"):
        Table(metric="test_accuracy", rows=["J"], also=["test_loss meen"]).check()
