"""Claims about the difference between two values of a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.results.claims.claim import Claim, Number, above, margin_text, relation, short_name
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import Names

PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": True}


@dataclass(frozen=True, kw_only=True)
class Gain(Claim):
    """The difference within each pair of values exceeds a margin, or that of each pair of `over`.

    A difference is the metric at the first value minus that at the second. The claim is about each
    combination of the other labels.
    """

    name: ClassVar[str] = "gain"

    along: str = parameter(help="the label")
    pairs: list[list[Any]] = parameter(
        items=PAIR,
        minItems=1,
        help="pairs of its values: the first one's metric minus the second's",
    )
    over: list[list[Any]] | None = parameter(
        None, items=PAIR, minItems=1, help="pairs whose differences are smaller"
    )
    margin: float = parameter(
        0.0,
        help="by more than this, in the unit as shown; a negative margin allows the "
        "other side, but by less",
    )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison for each pair: its two points, and those of a pair of `over`, if any."""
        pairs = [
            matrix.check_values(self.experiment, self.along, pair, "pairs") for pair in self.pairs
        ]
        over = [
            matrix.check_values(self.experiment, self.along, pair, "over")
            for pair in self.over or []
        ]
        wanted = [[*pair, *other] for pair in pairs for other in over or [[]]]
        sweeps = matrix.sweeps(self.experiment, self.given or {}, self.along)
        return [sweep.at(self.along, values) for sweep in sweeps for values in wanted]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first difference exceeds the second, or 0, by more than the margin."""
        other = values[2] - values[3] if len(values) > 2 else 0.0
        return [[above(values[0] - values[1], other, self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The differences with the values that they come from, as text."""
        words = []
        for pair, difference in enumerate(self._differences(values)[: len(values) // 2]):
            both = slice(2 * pair, 2 * pair + 2)
            first, second = values[both]
            called = " minus ".join(
                short_name(self.along, point.labels[self.along], names)
                for point in comparison.points[both]
            )
            words.append(
                f"{self.number(first)} - {self.number(second)} = "
                f"{self.number(difference)} ({called})"
            )
        return f" {relation(*self._differences(values))} ".join(words) + margin_text(self.margin)

    def _differences(self, values: Sequence[float]) -> tuple[float, float]:
        other = values[2] - values[3] if len(values) > 2 else 0.0
        return round(values[0] - values[1], 9), round(other, 9)
