"""In which rounds a cell is evaluated, and how many samples at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

EVALUATED, EVALUATED_NUMBERS = (
    250,
    250 * 3 * 32 * 32,
)  # samples evaluated at once, at most, and of how many numbers all together


def evaluated_at_once(shape: Sequence[int]) -> int:
    """How many samples of a shape are evaluated at once: as fast as more of them, in less memory."""
    return max(1, min(EVALUATED, EVALUATED_NUMBERS // math.prod(shape)))


def is_evaluated(every: int | str, round: int) -> bool:
    """`50` is every 50th round; `1 until 10, 10 until 400, 50` is every round until 10, every 10th until 400, every 50th from then on."""
    for part in str(every).split(", "):
        step, _, end = part.partition(" until ")
        if not end or round <= int(end):
            return round % int(step) == 0
    raise AssertionError(f"the last part of '{every}' has no end")


def spelled_out(every: int | str, rounds: int) -> int | str:
    """`10, last 10` of 500 rounds is `10 until 490, 1`: every tenth round, and each of the last ten, however many there are."""
    before, _, last = str(every).partition(", last ")
    if not last:
        return every
    turn, parts, ruled = rounds - int(last), [], 0
    for part in before.split(", "):
        step, _, end = part.partition(" until ")
        until = min(int(end or turn), turn)
        if until > ruled:
            parts.append(f"{step} until {until}")
            ruled = until
    return ", ".join([*parts, "1"]) if parts else 1
