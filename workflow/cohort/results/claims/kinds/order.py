"""Claims that a metric falls or rises along a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from cohort.core.components import parameter
from cohort.results.claims.claim import ClaimAlong, Number, above, point_name, relation
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import Names


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
        signs = [f" {relation(first, second)} " for first, second in pairwise(values)] + [""]
        return "".join(self.number(value) + sign for value, sign in zip(values, signs, strict=True))

    def opening(self, comparison: Comparison, names: Names) -> str:
        """The names of the compared values of `along`, as text."""
        return ", ".join(point_name(point, names) for point in comparison.points)
