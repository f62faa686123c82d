"""Claims about the difference between two values of a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.results.claims.claim import (
    MARGIN_HELP,
    ClaimAlong,
    Number,
    above,
    differences_text,
    margin_text,
)
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import Names

PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": True}
PAIRS_HELP = "pairs of its values: the first one's metric minus the second's"


@dataclass(frozen=True, kw_only=True)
class Gain(ClaimAlong):
    """The metric at the first of each pair of values exceeds that at the second by a margin.

    The claim is about each combination of the other labels.
    """

    name: ClassVar[str] = "gain"

    pairs: list[list[Any]] = parameter(items=PAIR, minItems=1, help=PAIRS_HELP)
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison of two points for each pair."""
        pairs = [self.checked(matrix, pair, "pairs") for pair in self.pairs]
        return [sweep.at(self.along, pair) for sweep in self.sweeps(matrix) for pair in pairs]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first value exceeds the second by more than the margin."""
        return [[above(values[0], values[1], self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The difference with the values that it comes from, as text."""
        pair = " minus ".join(self.value_name(point, names) for point in comparison.points)
        return differences_text(self, values, [pair]) + margin_text(self.margin)
