"""Which rounds of a cell are evaluated."""

import csv

import pytest

from cohort.settings import is_evaluated, resolve_last
from tests.conftest import ROOT


def evaluated(every: int | str, last: int) -> list[int]:
    return [round for round in range(1, last + 1) if is_evaluated(every, round)]


def test_a_number_means_every_nth_round():
    assert evaluated(1, 4) == [1, 2, 3, 4]
    assert evaluated(5, 16) == [5, 10, 15]


def test_each_part_applies_until_its_round():
    assert evaluated("1 until 3, 4 until 12, 10", 40) == [1, 2, 3, 4, 8, 12, 20, 30, 40]


@pytest.mark.parametrize(
    ("every", "rounds", "plan"),
    [
        ("10, last 10", 500, "10 until 490, 1"),
        ("10, last 10", 9, 1),
        ("10, last 10", 10, 1),
        (
            "1 until 10, 10 until 400, 50, last 10",
            2000,
            "1 until 10, 10 until 400, 50 until 1990, 1",
        ),
        ("1 until 10, 10 until 400, 50, last 10", 200, "1 until 10, 10 until 190, 1"),
        ("1 until 10, 50, last 5", 12, "1 until 7, 1"),
        (10, 500, 10),
        ("1 until 10, 50", 500, "1 until 10, 50"),
        ("drift 10, last 10; top5 1 until 3, 7", 500, "drift 10 until 490, 1; top5 1 until 3, 7"),
        ("", 500, ""),
    ],
)
def test_the_last_rounds_are_spelled_out(every: int | str, rounds: int, plan: int | str):
    assert resolve_last(every, rounds) == plan


def test_every_tenth_round_and_each_of_the_last_ten():
    rounds = evaluated(resolve_last("10, last 10", 500), 500)
    assert rounds == [*range(10, 491, 10), *range(491, 501)]


@pytest.mark.parametrize("J", ["J4", "J8", "J16"])
def test_the_plan_of_aml_is_when_its_authors_evaluated(J: str):
    """Their logs hold rounds 1 to 10, every tenth to 400 and every fiftieth after; 500, 1000 or 2000 rounds."""
    with open(ROOT / "resources/paper_values/aml_curves.csv") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["partition"], row["J"], row["dataset"]) == ("iid", f"{J}e", "cifar100")
        ]
    rounds = sorted({int(row["round"]) for row in rows})
    assert rounds == evaluated("1 until 10, 10 until 400, 50", rounds[-1])
