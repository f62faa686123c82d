"""Claims that a metric is above or below a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import Claim, Number, above, relation
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import Names


@dataclass(frozen=True, kw_only=True)
class Bound(Claim):
    """The metric is above a number, below one, or between two, for each point of `given`."""

    name: ClassVar[str] = "bound"

    above: float | None = parameter(None, help="what it is above, in the unit as shown")
    below: float | None = parameter(None, help="what it is below")
    every: Literal["runs"] | None = parameter(
        None, help="runs, if it says so of each run and not of the typical one"
    )

    def check(self) -> None:
        """Raise UserError if neither bound is set."""
        if self.above is None and self.below is None:
            raise UserError("it needs above or below, the number that the metric is compared with")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per point."""
        return [
            Comparison([point]) for point in matrix.all_points(self.experiment, self.given or {})
        ]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause per bound: the value is strictly above the lower, or below the upper one."""
        (value,) = values
        low = [] if self.above is None else [above(value, self.above)]
        high = [] if self.below is None else [above(self.below, value)]
        return [[difference] for difference in (*low, *high)]

    def is_about_every_run(self) -> bool:
        """Whether each run must keep the bounds, not the mean over seeds."""
        return self.every == "runs"

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The value and its relation to each bound, as text."""
        (point,), (value,) = comparison.points, values
        bounds = [bound for bound in (self.above, self.below) if bound is not None]
        return self.placed(point, value, names) + "".join(
            f" {relation(value, bound)} {bound:g}" for bound in bounds
        )
