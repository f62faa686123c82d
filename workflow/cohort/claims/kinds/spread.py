"""Claims that the values along a label are close together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cohort.claims.claim import Claim
from cohort.claims.matrix import Comparison, Matrix, Point
from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.metrics.names import Names


@dataclass(frozen=True, kw_only=True)
class Spread(Claim):
    """The metric varies by at most `within` along a label, and by at least `beyond`, for each
    combination of the others."""

    name: ClassVar[str] = "spread"

    along: str = parameter(help="the label")
    within: float = parameter(minimum=0, help="how far they may lie apart, in the unit as shown")
    beyond: float = parameter(0.0, minimum=0, help="how far they must lie apart at least")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per combination of the other labels."""
        return several(matrix.sweeps(self.experiment, self.given or {}, self.along), self.along)

    def holds(self, comparison: Comparison, values: Sequence[float]) -> bool:
        """Whether the highest value minus the lowest is from `beyond` to `within`."""
        return self.beyond <= round(max(values) - min(values), 9) <= self.within

    def has_enough(self, points: Sequence[Point]) -> bool:
        """Whether at least two points are left."""
        return len(points) > 1

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The difference, and the two values between which it is."""
        low, high = values.index(min(values)), values.index(max(values))
        ends = " to ".join(
            self.placed(comparison.points[place], values[place], names) for place in (low, high)
        )
        return f"{self.number(values[high] - values[low])} apart, {ends}"


def several(comparisons: list[Comparison], along: str) -> list[Comparison]:
    """Return the comparisons; UserError if one has fewer than two points."""
    for comparison in comparisons:
        if len(comparison.points) < 2:
            point = comparison.points[0]
            raise UserError(
                f"there is nothing to compare with {along} {point.labels[along]} of "
                f"{point.experiment}; let given leave more"
            )
    return comparisons
