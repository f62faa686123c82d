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
    """The difference within each pair of values exceeds a margin, or that of each pair of `over`.

    A difference is the metric at the first value minus that at the second. The claim is about each
    combination of the other labels.
    """

    name: ClassVar[str] = "gain"

    pairs: list[list[Any]] = parameter(items=PAIR, minItems=1, help=PAIRS_HELP)
    over: list[list[Any]] | None = parameter(
        None, items=PAIR, minItems=1, help="pairs whose differences are smaller"
    )
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison for each pair: its two points, and those of a pair of `over`, if any."""
        pairs = [self.checked(matrix, pair, "pairs") for pair in self.pairs]
        over = [self.checked(matrix, pair, "over") for pair in self.over or [[]]]
        wanted = [[*pair, *other] for pair in pairs for other in over]
        sweeps = self.sweeps(matrix)
        return [sweep.at(self.along, values) for sweep in sweeps for values in wanted]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first difference exceeds the second, or 0, by more than the margin."""
        other = values[2] - values[3] if len(values) > 2 else 0.0
        return [[above(values[0] - values[1], other, self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The differences with the values that they come from, as text."""
        first, second, *others = [self.value_name(point, names) for point in comparison.points]
        called = [f"{first} minus {second}", *([" minus ".join(others)] if others else [])]
        return differences_text(self, values, called) + margin_text(self.margin)
