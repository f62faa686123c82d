"""Claims about values: which is best, in which order they are, how far apart, how early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, permutations
from typing import Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.at import rounds_of
from cohort.results.claims.claim import (
    BEST_OF,
    TIE,
    ClaimAlong,
    Number,
    above,
    point_name,
    relation,
)
from cohort.results.claims.matrix import Comparison, Matrix, Point
from cohort.results.names import METRICS, Names, check_better
from cohort.results.series import label_text


@dataclass(frozen=True, kw_only=True)
class Best(ClaimAlong):
    """The best value of `along` is one of `among`, for each combination of the other labels."""

    name: ClassVar[str] = "best"

    among: list[Any] = parameter(
        minItems=1, uniqueItems=True, help="the values of which one must be better than all others"
    )

    def check(self) -> None:
        """Raise UserError for a metric of which neither high nor low values are better."""
        if not self.counts_rounds():
            check_better(self.metric, "none is best; use kind order, which states a direction")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per combination of the other labels."""
        sweeps = super().comparisons(matrix)
        among = self.checked(matrix, self.among, "among")
        for sweep in sweeps:
            compared = list(sweep.by(self.along))
            if not 0 < len(set(compared) & set(among)) < len(compared):
                raise UserError(
                    f"among must hold some of the values of {self.along} that are compared, and "
                    f"not all of them ({', '.join(compared)})"
                )
        return sweeps

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each other value: one of `among` is better."""
        sign = -1 if self.better() == "low" else 1
        candidates: list[Number] = []
        others: list[Number] = []
        for point, value in zip(comparison.points, values, strict=True):
            (candidates if self._is_among(point) else others).append(sign * value)
        return [list(map(partial(above, second=other), candidates)) for other in others]

    def has_enough(self, points: Sequence[Point]) -> bool:
        """Whether the points include one with a value in `among` and one with another value."""
        return 0 < sum(map(self._is_among, points)) < len(points)

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The values of all points as text, the best first."""
        pairs = zip(comparison.points, values, strict=True)
        ranked = sorted(pairs, key=lambda pair: pair[1], reverse=self.better() == "high")
        return "; ".join(self.placed(point, value, names) for point, value in ranked)

    def _is_among(self, point: Point) -> bool:
        return point.labels[self.along] in map(label_text, self.among)


@dataclass(frozen=True, kw_only=True)
class Order(ClaimAlong):
    """The metric falls (or rises) from each value of `along` to the next.

    The claim is about each combination of the other labels.
    """

    name: ClassVar[str] = "order"
    fewest = 2

    values: list[Any] = parameter(
        minItems=2, uniqueItems=True, help="its values, in the order of the claim"
    )
    way: Literal["falls", "rises"] = parameter(
        help="where the metric goes from each value to the next"
    )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per combination of the other labels, its points in the claim's order."""
        sweeps = self.sweeps(matrix)
        values = self.checked(matrix, self.values, "values")
        return [sweep.at(self.along, values) for sweep in sweeps]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each value but the first: it is below (or above) the one before it."""
        sign = 1 if self.way == "falls" else -1
        return [[above(sign * first, sign * second)] for first, second in pairwise(values)]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The values in order, with the sign (<, = or >) between each two, as text."""
        steps = (f" {relation(*pair)} {self.number(pair[1])}" for pair in pairwise(values))
        return self.number(values[0]) + "".join(steps)

    def opening(self, comparison: Comparison, names: Names) -> str:
        """The names of the compared values of `along`, as text."""
        return ", ".join(point_name(point, names) for point in comparison.points)


@dataclass(frozen=True, kw_only=True)
class Range(ClaimAlong):
    """The metric is above a number, below one, or in the range `between`; or its values along a
    label lie at most `within`, or more than `beyond`, apart.

    The claim is about each combination of the other labels; without `along` about each setting.
    """

    name: ClassVar[str] = "range"
    fewest = 2

    along: str = parameter("", help="the label whose values are judged together")
    above: float | None = parameter(None, help="what it is above, in the unit as shown")
    below: float | None = parameter(None, help="what it is below")
    between: list[float] | None = parameter(
        None, minItems=2, maxItems=2, help="the lowest and the highest value that it may have"
    )
    within: float | None = parameter(None, minimum=0, help="how far its values may lie apart")
    beyond: float | None = parameter(
        None, minimum=0, help="how far apart at least two of its values lie"
    )
    every: Literal["runs"] | None = parameter(
        None, help="runs, if it says so of each run and not of the typical one"
    )

    def check(self) -> None:
        """Raise UserError without a range, or for one that runs backwards."""
        apart = [limit for limit in (self.within, self.beyond) if limit is not None]
        if self.above is None and self.below is None and not self.between and not apart:
            raise UserError(
                "it needs the range that the sentence names: above, below or between (44 to 45 %), "
                "or within or beyond (how far apart)"
            )
        if apart and not self.along:
            raise UserError("within and beyond need along, the label whose values lie apart")
        if self.between and self.between[0] >= self.between[1]:
            raise UserError(f"between is {self.between}, a range that ends before it begins")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per combination of the labels other than `along`."""
        if self.along:
            return super().comparisons(matrix)
        points = matrix.all_points(self.experiment, self.given or {})
        return [Comparison([point]) for point in points]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """Clauses that are all true if each value is strictly above and below the bounds, each two
        are within `within`, some two are apart by more than `beyond`, and each value is in the
        range `between`, as far as these are given."""
        clauses: list[list[Number]] = []
        pairs = list(permutations(values, 2))
        if self.above is not None:
            clauses += [[above(value, self.above)] for value in values]
        if self.below is not None:
            clauses += [[above(self.below, value)] for value in values]
        if self.within is not None:
            clauses += [[above(self.within, high - low, -TIE)] for high, low in pairs]
        if self.beyond is not None:
            clauses += [[above(high, low, self.beyond) for high, low in pairs]]
        if self.between:
            low, high = self.between
            clauses += [[above(value, low, -TIE)] for value in values]
            clauses += [[above(high, value, -TIE)] for value in values]
        return clauses

    def is_about_every_run(self) -> bool:
        """Whether each run must keep the bounds, not the mean over seeds."""
        return self.every == "runs"

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Without `along` the value and its relation to each bound, else the largest difference and
        the two values between which it is, as text."""
        low, high = min(values), max(values)
        ends = [
            self.placed(comparison.points[values.index(end)], end, names) for end in (low, high)
        ]
        asked = f", asked for {' to '.join(map(self.number, self.between))}" if self.between else ""
        asked += f", asked for more than {self.beyond:g}" if self.beyond is not None else ""
        bounds = "".join(
            f" {relation(value, bound)} {bound:g}"
            for value, bound in ((low, self.above), (high, self.below))
            if bound is not None
        )
        apart = f"{self.number(high - low)} apart, {' to '.join(ends)}"
        return f"{apart if self.along else ends[0]}{bounds}{asked}"


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
        if self.counts_rounds():
            if METRICS[self.metric].better == "low":
                raise UserError(
                    f"at is 'max', which is not a goal: low values of {self.metric} are better"
                )
        elif rounds_of(self.at) is None or str(self.at).isdigit():
            raise UserError(
                f"at is '{self.at}', but must be a range of rounds such as 21-30, or max"
            )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison with each other value: the leader's point in the range of `at`, the other's
        in this and each later range; with `at: max` both points at the leader's best value."""
        leader, *others = self.checked(matrix, [self.leader, *self.others], "leader or others")
        comparisons = []
        for sweep in self.sweeps(matrix):
            for other in filter(sweep.by(self.along).__contains__, others):
                name = sweep.name | {self.along: other}
                first, second = sweep.at(self.along, [leader, other]).points
                pair = self._at_best if self.counts_rounds() else self._later
                comparisons.append(replace(sweep, points=pair(first, second), name=name))
        return comparisons

    def _at_best(self, leader: Point, other: Point) -> list[Point]:
        for label, value in leader.labels.items():
            if label != self.along and value != other.labels[label]:
                raise UserError(
                    f"at is 'max', which compares runs that differ in {self.along} only, but "
                    f"{label} is {value} and {other.labels[label]}"
                )
        at = f"{BEST_OF}{self.along} {leader.labels[self.along]}"
        return [replace(leader, at=at), replace(other, at=at)]

    def _later(self, leader: Point, other: Point) -> list[Point]:
        """The leader, and the other at the range of `at` and at each that follows, as long, up to
        the last round."""
        first, last = map(int, str(self.at).split("-"))
        length = last - first + 1
        begins = range(first, max(other.rounds, last) - length + 2, length)
        return [leader, *(replace(other, at=f"{begin}-{begin + length - 1}") for begin in begins)]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each range that would be too early: the other is still behind the goal in
        it. With `at: max` one clause: the other needs more rounds than `times` the leader's."""
        if self.counts_rounds():
            return [[above(values[1], self.times * values[0])]]
        sign = -1 if self.better() == "low" else 1
        goal, *later = zip(comparison.points, values, strict=True)
        enough = self.times * _last(goal[0])
        return [
            [above(sign * goal[1], sign * value, TIE)]  # who is level has reached it
            for index, (point, value) in enumerate(later)
            if index == 0 or _last(point) < enough
        ]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The leader's goal, and the round in which the other reaches it, as text."""
        if self.counts_rounds():
            last, reached = values
            goal = f"best in round {self.number(last)}"
        else:
            sign = -1 if self.better() == "low" else 1
            leader, *later = comparison.points
            last = _last(leader)
            goal = f"{self.placed(leader, values[0], names)} by round {last}"
            in_time = (
                _last(point)
                for point, value in zip(later, values[1:], strict=True)
                if sign * value >= sign * values[0]
            )
            reached = next(in_time, float("inf"))
        if reached == float("inf"):
            return f"{goal}, never reached"
        return f"{goal}, reached by round {reached:.4g}, {reached / last:.2g} times as late"

    def counts_rounds(self) -> bool:
        """Whether the goal is the leader's best value, so that rounds are compared."""
        return self.at == "max"


def _last(point: Point) -> int:
    return int(str(point.at).partition("-")[2])
