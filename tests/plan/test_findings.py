"""A finding of a study that rests on nothing that the study has is refused when planning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.plan import Plan

TABLE = {
    "experiment": "main",
    "metric": "test_accuracy",
    "at": "21-30",
    "rows": ["partition"],
    "also": ["selection_gini last"],
}
RESTS = {"board, fedavg, iid, 21-30, mean": "81 [80, 82]", "board, selection_gini, mean": 0.3}


def test_places_that_a_table_has(plan_of: Callable[..., Plan]) -> None:
    findings = [{"text": "It is 81.", "rests_on": RESTS}]
    study = plan_of({}, tables={"board": TABLE}, findings=findings).study("study")
    assert study.findings == findings


@pytest.mark.parametrize(
    ("finding", "message"),
    [
        ("It is 81.", "findings[0] is 'It is 81.', but must be a mapping"),
        ({"text": "It is 81."}, "findings[0] lacks the key 'rests_on'"),
        ({"text": "It is 81.", "rests_on": {}}, "findings[0].rests_on is empty"),
        (
            {"text": "It is 81.", "rests_on": {"bord, iid, mean": 81}},
            "findings[0].rests_on names 'bord', which is neither a table nor a claim; "
            "did you mean 'board'? (allowed: board)",
        ),
        (
            {"text": "It is 81.", "rests_on": {"board, idd, mean": 81}},
            "findings[0].rests_on names 'idd', which board does not show; did you mean 'iid'?",
        ),
        ({"text": "It is 81.", "rests_on": {"board, iid, median": 81}}, "findings[0].rests_on"),
    ],
)
def test_others_are_refused(plan_of: Callable[..., Plan], finding: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        plan_of({}, tables={"board": TABLE}, findings=[finding])
    assert message in str(error.value)
