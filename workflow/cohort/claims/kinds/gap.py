"""Claims that a difference is larger in one setting than in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cohort.claims.claim import Claim, Number, above, relation, short
from cohort.claims.matrix import Comparison, Matrix, Point
from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.metrics.names import Names

AT = "at"


@dataclass(frozen=True, kw_only=True)
class Gap(Claim):
    """The difference between two values of `along` is larger with some labels than with others, or
    in some rounds than in others (`at` among the labels)."""

    name: ClassVar[str] = "gap"

    along: str = parameter(help="the label")
    between: list[Any] = parameter(
        minItems=2,
        maxItems=2,
        uniqueItems=True,
        help="its two values: the first one's metric minus the second's",
    )
    larger: dict[str, Any] = parameter(
        minProperties=1,
        help="labels with which the difference is larger; at for the rounds, such as 41-100",
    )
    than: dict[str, Any] = parameter(
        minProperties=1, help="than with these; each combination is compared with each"
    )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """Four points for each two settings that agree in all labels but `larger` and `than`."""
        larger, than = (self._pairs(matrix, labels) for labels in (self.larger, self.than))
        own = {*self.larger, *self.than}

        def rest(pair: Comparison) -> dict[str, str]:
            return {label: value for label, value in pair.name.items() if label not in own}

        pairs = [
            (first, second) for first in larger for second in than if rest(first) == rest(second)
        ]
        if not pairs:
            raise UserError(
                "larger and than have no other label in common, so that nothing can be compared; "
                "say more in given"
            )
        return [Comparison([*first.points, *second.points], rest(first)) for first, second in pairs]

    def _pairs(self, matrix: Matrix, settings: dict[str, Any]) -> list[Comparison]:
        labels = {label: value for label, value in settings.items() if label != AT}
        at = settings.get(AT, "")
        pairs = matrix.sweeps(self.experiment, (self.given or {}) | labels, self.along)
        values = matrix.check_values(self.experiment, self.along, self.between, "between")
        ordered = []
        for pair in pairs:
            found = {
                point.labels[self.along]: Point(point.experiment, point.labels, list(labels), at=at)
                for point in pair.points
            }
            if lacking := [value for value in values if value not in found]:
                rest = ", ".join(
                    f"{label} {value}" for label, value in ((self.given or {}) | labels).items()
                )
                raise UserError(
                    f"{self.experiment} has no cell with {self.along} {lacking[0]} and {rest}"
                )
            ordered.append(replace(pair, points=[found[value] for value in values]))
        return ordered

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """The first difference is larger than the second."""
        return [[above(values[0] - values[1], values[2] - values[3])]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Both differences with the values that they come from."""
        differences = self._differences(values)
        words = []
        for place, difference in enumerate(differences):
            point, (first, second) = comparison.points[2 * place], values[2 * place : 2 * place + 2]
            words.append(
                f"{self.number(first)} - {self.number(second)} = "
                f"{self.placed(point, difference, names)}"
            )
        return f" {relation(*differences)} ".join(words)

    def opening(self, comparison: Comparison, names: Names) -> str:
        """The two values of the label that are subtracted."""
        return " minus ".join(
            short(self.along, point.labels[self.along], names) for point in comparison.points[:2]
        )

    def _differences(self, values: Sequence[float]) -> tuple[float, float]:
        return round(values[0] - values[1], 9), round(values[2] - values[3], 9)
