"""Quantities above or below other quantities, also of other experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cohort.claims.claim import Claim, relation
from cohort.claims.matrix import Comparison, Matrix
from cohort.components import parameter
from cohort.errors import UserError
from cohort.records.names import Names

QUANTITY = {
    "type": "object",
    "properties": {"experiment": {"type": "string"}, "given": {"type": "object"}},
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Compare(Claim):
    """What `experiment` and `given` name is above, or below, other quantities: a higher or a lower number, whichever of them is better."""

    name: ClassVar[str] = "compare"

    above: list[dict[str, Any]] | None = parameter(
        None, items=QUANTITY, minItems=1, help="each an experiment (this one if none) and a given"
    )
    below: list[dict[str, Any]] | None = parameter(None, items=QUANTITY, minItems=1, help="the same")
    margin: float = parameter(0.0, minimum=0, help="by more than this, in the unit as shown")

    def check(self) -> None:
        """Ask for something to compare with."""
        if not self.above and not self.below:
            raise UserError("it needs above or below, a list of what it is compared with")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """Each point with each point of every entry."""
        subjects = matrix.points(self.experiment, self.given or {})
        entries = [(way, entry) for way in ("above", "below") for entry in getattr(self, way) or []]
        others = [(way, matrix.points(entry.get("experiment", self.experiment), entry.get("given", {}))) for way, entry in entries]
        return [Comparison([subject, point], way=way) for subject in subjects for way, points in others for point in points]

    def holds(self, comparison: Comparison, values: Sequence[float]) -> bool:
        """Whether the first is above (or below) the second by more than the margin."""
        more, less = values if comparison.way == "above" else reversed(values)
        if not self.margin or float("inf") in values:  # infinity minus infinity is no number
            return more > less
        return round(more - less, 9) > self.margin

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Both values with the sign as it is, and the margin that is asked for."""
        first, second = (self.placed(point, value, names) for point, value in zip(comparison.points, values, strict=True))
        margin = f", asked for more than {self.margin:g} apart" if self.margin else ""
        return f"{first} {relation(*values)} {second}{margin}"
