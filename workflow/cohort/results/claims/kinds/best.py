"""Claims that a value of a label is the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import ClaimAlong, Number, above
from cohort.results.claims.matrix import Comparison, Matrix, Point
from cohort.results.names import Names, check_better
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
