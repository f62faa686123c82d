"""`seeds` in the config: how many seeds every experiment has."""

from collections.abc import Callable
from typing import Any

import pytest

from cohort.core import UserError
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


def test_a_deadline_is_judged_by_the_devices_of_each_seed(plan_of: PlanOf) -> None:
    """The fastest of three clients takes 0.672 seconds with seed 0, 0.270 with seed 2."""
    settings = {"clients": 3, "cohort": 2, "client_devices": "lognormal-1"}
    settings |= {"participation": "deadline-0.5"}
    assert seeds(plan_of({"axes": {"seed": [2]}, "settings": settings})) == [2]
    with pytest.raises(UserError, match=r"takes at least 0\.672 seconds"):
        plan_of({"axes": {"seed": [2, 0]}, "settings": settings})
