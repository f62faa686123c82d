"""Claims that a quantity is above or below others, also of other experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import (
    AT_HELP,
    AT_SCHEMA,
    MARGIN_HELP,
    Claim,
    Number,
    above,
    counts_rounds,
    margin_text,
    relation,
)
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import BY_ROUND, METRICS, Names

QUANTITY = {
    "type": "object",
    "properties": {
        "experiment": {"type": "string"},
        "given": {"type": "object"},
        "metric": {"type": "string", "enum": BY_ROUND},
        "at": AT_SCHEMA | {"description": AT_HELP},
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Compare(Claim):
    """The metric of `given` is numerically above or below that of other quantities."""

    name: ClassVar[str] = "compare"

    above: list[dict[str, Any]] | None = parameter(
        None,
        items=QUANTITY,
        minItems=1,
        help="each with experiment, given, metric, at where they differ",
    )
    below: list[dict[str, Any]] | None = parameter(
        None, items=QUANTITY, minItems=1, help="the same"
    )
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def check(self) -> None:
        """Raise UserError if there is nothing to compare with, or in another unit."""
        if not self.above and not self.below:
            raise UserError("it needs above or below, a list of what it is compared with")
        for entry in [*(self.above or []), *(self.below or [])]:
            metric, at = entry.get("metric", self.metric), entry.get("at", self.at)
            if _unit(metric, at) != _unit(self.metric, self.at):
                raise UserError(
                    f"{self.metric} (at {self.at}) cannot be compared with {metric} (at {at}), "
                    "which has another unit"
                )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison of each point of `given` with each of every entry of `above` and `below`."""
        subjects = matrix.points(self.experiment, self.given or {})
        entries = [(way, entry) for way in ("above", "below") for entry in getattr(self, way) or []]
        others = []
        for way, entry in entries:
            points = matrix.points(entry.get("experiment", self.experiment), entry.get("given", {}))
            metric, at = entry.get("metric", ""), entry.get("at", "")
            others += [(way, replace(point, metric=metric, at=at)) for point in points]
        return [
            Comparison([subject, point], way=way) for subject in subjects for way, point in others
        ]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first value is above (or below) the second by more than the margin."""
        more, less = values if comparison.way == "above" else reversed(values)
        return [[above(more, less, self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Both values with the sign between them, and the margin, as text."""
        first, second = (
            self.placed(point, value, names)
            for point, value in zip(comparison.points, values, strict=True)
        )
        return f"{first} {relation(*values)} {second}{margin_text(self.margin)}"


def _unit(metric: str, at: int | str) -> tuple[str, float]:
    return ("rounds", 1.0) if counts_rounds(at) else (METRICS[metric].unit, METRICS[metric].scale)
