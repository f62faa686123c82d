"""The rounds of a cell that are evaluated, and the number of samples at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

MOST_SAMPLES = 250  # evaluated at once
MOST_VALUES = 250 * 3 * 32 * 32  # of these samples together


def evaluation_batch_size(shape: Sequence[int]) -> int:
    """The number of samples of this shape to evaluate at once; more need memory and are no
    faster."""
    return max(1, min(MOST_SAMPLES, MOST_VALUES // math.prod(shape)))


def is_evaluated(every: int | str, round: int) -> bool:
    """Whether a plan of evaluations has a round. `50` means every 50th round; `1 until 10, 10 until
    400, 50` means every round up to 10, every 10th up to 400, and every 50th after that."""
    for part in str(every).split(", "):
        step, _, end = part.partition(" until ")
        if not end or round <= int(end):
            return round % int(step) == 0
    raise AssertionError(f"the last part of '{every}' has no end")


@functools.cache
def evaluated_rounds(every: int | str, rounds: int) -> tuple[int, ...]:
    """The rounds that a plan evaluates in a run of so many, always with the last; none if the plan
    is 0."""
    if not every:
        return ()
    return (*(round for round in range(1, rounds) if is_evaluated(every, round)), rounds)


def plans_by_name(evaluators: str) -> dict[str, str]:
    """Split a setting like `drift 10; sharpness 50, last 10` into the evaluators' plans, by
    name."""
    parts = (part.partition(" ") for part in evaluators.split("; ") if part)
    return {name: plan for name, _, plan in parts}


def resolve_last(every: int | str, rounds: int) -> int | str:
    """Replace `last N` in a plan of evaluations by the round where it begins: `10, last 10` becomes
    `10 until 490, 1` for 500 rounds, every tenth round and each of the last ten. Plans of several
    evaluators keep the evaluators' names."""
    if str(every)[:1].isalpha():
        plans = plans_by_name(str(every)).items()
        return "; ".join(f"{name} {resolve_last(plan, rounds)}" for name, plan in plans)
    before, _, last = str(every).partition(", last ")
    if not last:
        return every
    begin, parts, covered = rounds - int(last), [], 0
    for part in before.split(", "):
        step, _, end = part.partition(" until ")
        until = min(int(end or begin), begin)
        if until > covered:
            parts.append(f"{step} until {until}")
            covered = until
    return ", ".join([*parts, "1"]) if parts else 1
