"""Claims about how many rounds others need for what one has already reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.at import rounds_of
from cohort.results.claims.claim import TIE, ClaimAlong, Number, above, best_of
from cohort.results.claims.matrix import Comparison, Matrix, Point
from cohort.results.names import METRICS, Names, check_better


@dataclass(frozen=True, kw_only=True)
class Slower(ClaimAlong):
    """Other values of a label take `times` as many rounds to what the leader has in a range.

    Others are looked at in later ranges of the same length, up to the end of their runs; one that
    never gets there is slower too. The rounds compared are the last ones of the ranges. With `at:
    max` the goal is the leader's best value, seed by seed, and the rounds compared are the first
    ones that reach it.
    """

    name: ClassVar[str] = "slower"

    leader: float | str = parameter(help="its value that sets the goal, in the rounds of `at`")
    others: list[Any] = parameter(
        minItems=1, uniqueItems=True, help="its values that are compared with that, one by one"
    )
    times: float = parameter(
        1.0, exclusiveMinimum=0, help="how many times as many rounds they need at least"
    )

    def check(self) -> None:
        """Raise UserError for an `at` that is neither a range nor `max`, or a metric without a
        better side."""
        check_better(self.metric, "nothing can be reached")
        if self.buckets:
            raise UserError("buckets are for other kinds: this one compares ranges itself")
        if self.counts_rounds() and METRICS[self.metric].better == "low":
            raise UserError(
                f"at is 'max', which is not a goal: low values of {self.metric} are better"
            )
        limits = rounds_of(self.at)
        if not self.counts_rounds() and (limits is None or str(self.at).isdigit()):
            raise UserError(
                f"at is '{self.at}', but must be a range of rounds such as 21-30, or max"
            )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison with each other value: the leader's point in the range of `at`, the other's
        in this and each later range; with `at: max` both points at the leader's best value."""
        values = [self.leader, *self.others]
        leader, *others = self.checked(matrix, values, "leader or others")
        comparisons = []
        for sweep in self.sweeps(matrix):
            points = sweep.by(self.along)
            for other in filter(points.__contains__, others):
                name = sweep.name | {self.along: other}
                first, second = sweep.at(self.along, [leader, other]).points
                if self.counts_rounds():
                    pair = self._at_best(first, second)
                else:
                    pair = [first, *self._later(second, matrix.rounds(second))]
                comparisons.append(replace(sweep, points=pair, name=name))
        return comparisons

    def _at_best(self, leader: Point, other: Point) -> list[Point]:
        for label, value in leader.labels.items():
            if label != self.along and value != other.labels[label]:
                raise UserError(
                    f"at is 'max', which compares runs that differ in {self.along} only, but "
                    f"{label} is {value} and {other.labels[label]}"
                )
        at = best_of(self.along, leader.labels[self.along])
        return [replace(leader, at=at), replace(other, at=at)]

    def _later(self, point: Point, rounds: int) -> list[Point]:
        """The point at the range of `at` and each that follows, as long, up to the last round."""
        first, last = map(int, str(self.at).split("-"))
        length = last - first + 1
        begins = range(first, max(rounds, last) - length + 2, length)
        return [replace(point, at=f"{begin}-{begin + length - 1}") for begin in begins]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each range that would be too early: the other is still behind the goal in
        it. With `at: max` one clause: the other needs more rounds than `times` the leader's."""
        if self.counts_rounds():
            return [[above(values[1], self.times * values[0])]]
        sign = -1 if self.better() == "low" else 1
        goal, *later = zip(comparison.points, values, strict=True)
        enough = self.times * _last(goal[0])
        return [
            [above(sign * goal[1], sign * value) - TIE]  # who is level has reached it
            for index, (point, value) in enumerate(later)
            if index == 0 or _last(point) < enough
        ]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The leader's goal, and the round in which the other reaches it, as text."""
        if self.counts_rounds():
            return f"best in round {self.number(values[0])}, {_lateness(values[1], values[0])}"
        goal, reached = comparison.points[0], self._reached(comparison, values)
        last = _last(goal)
        return f"{self.placed(goal, values[0], names)} by round {last}, {_lateness(reached, last)}"

    def counts_rounds(self) -> bool:
        """Whether the goal is the leader's best value, so that rounds are compared."""
        return self.at == "max"

    def _reached(self, comparison: Comparison, values: Sequence[float]) -> float:
        sign = -1 if self.better() == "low" else 1
        for point, value in zip(comparison.points[1:], values[1:], strict=True):
            if sign * value >= sign * values[0]:
                return _last(point)
        return float("inf")


def _last(point: Point) -> int:
    return int(str(point.at).partition("-")[2])


def _lateness(reached: float, by: float) -> str:
    """Text: the round in which the goal is reached, and how many times as late as by the leader."""
    if reached == float("inf"):
        return "never reached"
    return f"reached by round {reached:.4g}, {reached / by:.2g} times as late"
