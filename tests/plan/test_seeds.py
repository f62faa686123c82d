"""`seeds` in the config: how many seeds every experiment has."""

from collections.abc import Callable
from typing import Any

from cohort.plan import Plan

PlanOf = Callable[..., Plan]


def seeds(plan: Plan) -> list[int]:
    return [row.labels["seed"] for row in plan.study("study").experiments["main"].rows]


def test_the_studys_own_seeds_come_first_with_their_digests(plan_of: PlanOf) -> None:
    block: dict[str, Any] = {"axes": {"seed": [7, 1]}}
    own = plan_of(block)
    more = plan_of(block, config={"seeds": 4})
    assert seeds(more) == [7, 1, 0, 2]
    assert set(own.cells) < set(more.cells) and len(more.cells) == 4
    assert seeds(plan_of(block, config={"seeds": 1})) == [7]
    assert seeds(plan_of(block, config={"seeds": 0})) == [7, 1]
