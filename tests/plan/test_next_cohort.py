"""Where the held-out accuracy of the next cohort cannot be had, planning says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.selection.random import Random

SETTINGS = {"holdout": 0.1, "evaluate_next": 1}
ASKS = r"strategy '\S+' screens, probes or asks clients before it chooses; leave it out$"
PlanOf = Callable[..., Plan]


@pytest.mark.parametrize(
    ("strategy", "changes", "sentence"),
    [
        ("peco", {"holdout": 0.0}, r"needs samples that clients hold out: set holdout above 0$"),
        ("fedavg", {"procedure": "concat-2"}, r"a draw after each round, which procedure 'concat-2' does not have"),
        ("probe", {}, ASKS),
        ("fedavg", {}, ASKS),
    ],
)  # fmt: skip
def test_a_sentence_says_where_it_cannot_be_had(
    strategy: str,
    changes: dict[str, Any],
    sentence: str,
    plan_of: PlanOf,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Random, "needs", frozenset({"candidate_loss"}))
    with pytest.raises(UserError, match=sentence) as caught:
        plan_of({"axes": {"strategy": [strategy]}, "settings": SETTINGS | changes})
    assert "evaluate_next" in str(caught.value) and "\n" not in str(caught.value)


def test_other_selectors_take_it(plan_of: PlanOf):
    axes = {"strategy": ["peco", "fedavg", "loss", "training-loss", "fps-0.2", "ucb", "kl"]}
    assert len(plan_of({"axes": axes, "settings": SETTINGS}).cells) == 7
