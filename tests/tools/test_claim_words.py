"""Claims in words, each written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cohort.results.claims import Claim
from tests.results.claims.samples import FRAME, NAMES, claim
from tools.claim_words import KINDS, claim_in_words

PAIRS = [["a", "fedavg"], ["a", "b"], ["b", "fedavg"]]
WORDS: list[tuple[str, dict[str, Any], str]] = [
    (
        "order",
        {"along": "J", "values": ["J4", "J8"], "way": "rises", "at": "first 0.2"},
        "the first round with a test accuracy of 20 % is later from each to the next in this "
        "order: J4, J8",
    ),
    (
        "range",
        {"along": "lr", "within": 1, "given": {"strategy": "fedavg", "lr": [0.1, 1]}},
        "for FedAvg, test accuracy at the end differs by at most 1 point between any two values of "
        "learning rate (lr 0.1, lr 1)",
    ),
    (
        "range",
        {"along": "lr", "beyond": 0.5, "metric": "test_loss", "at": "min"},
        "test loss at its lowest differs by more than 0.5 between some two values of learning rate",
    ),
    (
        "range",
        {"along": "lr", "between": [44, 45]},
        "test accuracy at the end is 44 to 45 for every value of learning rate",
    ),
    (
        "best",
        {"along": "strategy", "among": ["a", "b"], "given": {"strategy": ["a", "b", "fedavg"]}},
        "test accuracy at the end is higher for one of a, b than for FedAvg",
    ),
    (
        "best",
        {"along": "strategy", "among": ["a"], "metric": "selection_gini"},
        "Gini coefficient of selections at the end is lower for a than for all others",
    ),
    (
        "compare",
        {
            "given": {"J": "J4"},
            "at": "last-10",
            "above": [{"given": {"J": "J8"}, "at": 400}],
            "below": [{"experiment": "other"}],
            "margin": -2,
        },
        "for J4, test accuracy in the last ten rounds is at most 2 points below that of J8 in "
        "round 400 and is at most 2 points above that in experiment `other`",
    ),
    (
        "compare",
        {"below": [{"metric": "majority_accuracy", "given": {"J": "J4"}}]},
        "test accuracy at the end is below accuracy of the most frequent class at the end for J4",
    ),
    (
        "gain",
        {"along": "strategy", "pairs": PAIRS, "margin": 5, "at": "1-100", "buckets": 10},
        "test accuracy in each 10 of rounds 1 to 100: a is more than 5 points above FedAvg, b; b is "
        "more than 5 points above FedAvg",
    ),
    (
        "average",
        {"along": "strategy", "pairs": PAIRS, "margin": 5},
        "test accuracy at the end: a is more than 5 points above FedAvg, b; b is more than 5 points "
        "above FedAvg, on average over settings",
    ),
    (
        "gap",
        {
            "along": "strategy",
            "between": ["a", "b", "fedavg"],
            "larger": {"J": "J4", "at": "41-100"},
            "than": {"J": "J4", "at": "1-40"},
        },
        "test accuracy at the end: a minus each of b, FedAvg is larger for J4; rounds 41 to 100 "
        "than for J4; rounds 1 to 40",
    ),
    (
        "gap",
        {
            "along": "strategy",
            "between": ["a", "fedavg"],
            "grows": [[{"J": "J4"}, {"J": "J8"}], [{"J": "J8"}, {"J": ["J4", "J16"]}]],
        },
        "test accuracy at the end: a minus FedAvg grows from (J4) to (J8), and from (J8) to "
        "(J4, J16)",
    ),
    (
        "slower",
        {"along": "strategy", "leader": "a", "others": ["fedavg"], "at": "6-10", "times": 2},
        "test accuracy in rounds 6 to 10: that of a is reached 2 times as late by FedAvg, or never",
    ),
    (
        "range",
        {"above": 65, "below": 75, "every": "runs", "metric": "test_accuracy_swing"},
        "change between rounds (SD) at the end is above 65 and below 75 in every run",
    ),
]


@pytest.mark.parametrize(("kind", "fields", "words"), WORDS)
def test_in_words(kind: str, fields: dict[str, Any], words: str) -> None:
    assert claim_in_words(claim(kind, **fields), NAMES) == words


def test_all_words_are_tested() -> None:
    assert {kind.name for kind in KINDS} == {kind for kind, _, _ in WORDS}


class Higher(Claim):
    """It is higher than any
    other.

    By how much does not matter.
    """


def test_another_kind_is_described_by_its_docstring() -> None:
    assert claim_in_words(Higher(**FRAME), NAMES) == (
        "test accuracy at the end: It is higher than any other"
    )
