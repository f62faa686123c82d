"""Where the held-out accuracy of the next cohort cannot be had, planning says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan
from cohort.selection.simple import Random

SETTINGS = {"holdout": 0.1, "evaluate_next": 1}
ASKS = r"strategy '\S+' screens, probes or asks clients before it chooses; leave it out$"
PlanOf = Callable[..., Plan]


def check_refused(plan_of: PlanOf, strategy: str, sentence: str, **changes: Any) -> None:
    with pytest.raises(UserError, match=sentence) as caught:
        plan_of({"axes": {"strategy": [strategy]}, "settings": SETTINGS | changes})
    assert "evaluate_next" in str(caught.value) and "\n" not in str(caught.value)


def test_it_needs_held_out_samples_and_a_selector_that_chooses(plan_of: PlanOf):
    check_refused(plan_of, "peco", r"clients hold out: set holdout above 0$", holdout=0.0)
    sentence = r"a draw after each round, which procedure 'concat-2' does not have"
    check_refused(plan_of, "fedavg", sentence, procedure="concat-2")


def test_no_client_is_asked_for_it(plan_of: PlanOf, monkeypatch: pytest.MonkeyPatch):
    check_refused(plan_of, "probe", ASKS)
    monkeypatch.setattr(Random, "needs", frozenset({"candidate_loss"}))
    check_refused(plan_of, "fedavg", ASKS)


def test_other_selectors_take_it(plan_of: PlanOf):
    axes = {"strategy": ["peco", "fedavg", "loss", "training-loss", "fps-0.2", "ucb", "kl"]}
    assert len(plan_of({"axes": axes, "settings": SETTINGS}).cells) == 7
