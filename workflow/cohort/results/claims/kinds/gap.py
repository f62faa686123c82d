"""Claims that a difference is larger in one setting than in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import Claim, Number, above, relation, short
from cohort.results.claims.matrix import Comparison, Matrix, Point, text
from cohort.results.names import Names

AT = "at"


@dataclass(frozen=True, kw_only=True)
class Gap(Claim):
    """The difference between values of `along` is larger with some labels than with others, or in
    some rounds than in others (`at` among the labels)."""

    name: ClassVar[str] = "gap"

    along: str = parameter(help="the label")
    between: list[Any] = parameter(
        minItems=2,
        uniqueItems=True,
        help="its values: the first one's metric minus that of each of the others",
    )
    larger: dict[str, Any] | None = parameter(
        None,
        minProperties=1,
        help="labels with which the difference is larger; at for the rounds, such as 41-100",
    )
    than: dict[str, Any] | None = parameter(
        None, minProperties=1, help="than with these; each combination is compared with each"
    )
    grows: list[dict[str, Any]] | None = parameter(
        None,
        items={"type": "object", "minProperties": 1},
        minItems=2,
        help="instead of both: labels, from each of which the difference grows to the next",
    )

    def check(self) -> None:
        """Raise UserError unless it has either `larger` and `than`, or `grows`."""
        named = [labels is not None for labels in (self.larger, self.than, self.grows)]
        if named not in ([True, True, False], [False, False, True]):
            raise UserError(
                "it needs larger and than, the labels of two differences, or else grows, a list of "
                "labels in whose order the difference grows"
            )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """Four points for each two settings that agree in all labels but those of a step."""
        first, *others = matrix.check_values(self.experiment, self.along, self.between, "between")
        steps = list(pairwise(self.grows or [self.than or {}, self.larger or {}]))
        found = []
        for other, (than, larger) in product(others, steps):
            step = self._step(matrix, [first, other], larger, than)
            label = {self.along: other} if len(others) > 1 else {}
            found += [replace(comparison, name=label | comparison.name) for comparison in step]
        return found

    def _step(
        self, matrix: Matrix, values: list[str], more: dict[str, Any], less: dict[str, Any]
    ) -> list[Comparison]:
        larger, than = (self._pairs(matrix, values, labels) for labels in (more, less))
        own = {*more, *less}

        def rest(pair: Comparison) -> dict[str, str]:
            return {label: value for label, value in pair.name.items() if label not in own}

        pairs = [
            (first, second) for first in larger for second in than if rest(first) == rest(second)
        ]
        if not pairs:
            raise UserError(
                "two settings have no other label in common, so that nothing can be compared; "
                "say more in given"
            )
        return [Comparison([*first.points, *second.points], rest(first)) for first, second in pairs]

    def _pairs(
        self, matrix: Matrix, values: list[str], settings: dict[str, Any]
    ) -> list[Comparison]:
        labels = {label: value for label, value in settings.items() if label != AT}
        at = settings.get(AT, "")
        pairs = matrix.sweeps(self.experiment, (self.given or {}) | labels, self.along)
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
        """The values of the label that are subtracted."""
        first, *others = (short(self.along, text(value), names) for value in self.between)
        return f"{first} minus {' or '.join(others)}"

    def _differences(self, values: Sequence[float]) -> tuple[float, float]:
        return round(values[0] - values[1], 9), round(values[2] - values[3], 9)
