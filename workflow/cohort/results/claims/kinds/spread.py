"""Claims that the values along a label are close together, or all lie in a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import ClaimAlong, Number, above, at_least
from cohort.results.claims.matrix import Comparison
from cohort.results.names import Names


@dataclass(frozen=True, kw_only=True)
class Spread(ClaimAlong):
    """Along a label the metric varies by at most `within`, by more than `beyond`, or all its values
    lie in the range `between`, for each combination of the other labels."""

    name: ClassVar[str] = "spread"
    fewest = 2

    within: float | None = parameter(
        None, minimum=0, help="how far they may lie apart, in the unit as shown"
    )
    beyond: float | None = parameter(
        None, minimum=0, help="how far apart at least two of them lie, in the unit as shown"
    )
    between: list[float] | None = parameter(
        None,
        minItems=2,
        maxItems=2,
        help="the lowest and the highest value that the sentence names",
    )

    def check(self) -> None:
        """Raise UserError without a range, or for one that runs backwards."""
        if self.within is None and self.beyond is None and self.between is None:
            raise UserError(
                "it needs the range that the sentence names: between (44 to 45 %), or within or "
                "beyond (how far apart)"
            )
        if self.between and self.between[0] >= self.between[1]:
            raise UserError(f"between is {self.between}, a range that ends before it begins")

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """Clauses that are all true if each two values are within `within`, some two are apart by
        more than `beyond`, and each value is in the range `between`, as far as these are given."""
        clauses: list[list[Number]] = []
        if self.within is not None:
            pairs = permutations(values, 2)
            clauses += [[at_least(self.within, high - low)] for high, low in pairs]
        if self.beyond is not None:
            pairs = permutations(values, 2)
            clauses += [[above(high, low, self.beyond) for high, low in pairs]]
        if self.between:
            low, high = self.between
            clauses += [[at_least(value, low)] for value in values]
            clauses += [[at_least(high, value)] for value in values]
        return clauses

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The largest difference, and the two values between which it is, as text."""
        low, high = values.index(min(values)), values.index(max(values))
        ends = " to ".join(
            self.placed(comparison.points[end], values[end], names) for end in (low, high)
        )
        between = self.between or []
        asked = f", asked for {' to '.join(map(self.number, between))}" if between else ""
        asked += f", asked for more than {self.beyond:g}" if self.beyond is not None else ""
        return f"{self.number(values[high] - values[low])} apart, {ends}{asked}"
