"""Claims that a value of a label is ahead of others on average over settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import MARGIN_HELP, ClaimAlong, Number, above, margin_text
from cohort.results.claims.kinds.gain import PAIR, PAIRS_HELP
from cohort.results.claims.matrix import Comparison, Matrix, Point
from cohort.results.intervals import ALPHA
from cohort.results.names import Names
from cohort.results.signed_ranks import SignedRanks

FEWEST_SETTINGS = 5  # of fewer not even all on one side are clear: of four, one in 16 are by chance


@dataclass(frozen=True, kw_only=True)
class Average(ClaimAlong):
    """On average over all combinations of the other labels, the first of each pair of values
    exceeds the second by a margin.

    The combinations are settings, and these are what Wilcoxon's signed-rank test counts, each by
    its mean difference over seeds: a few settings may go the other way.
    """

    name: ClassVar[str] = "average"
    is_over_settings: ClassVar[bool] = True

    pairs: list[list[Any]] = parameter(items=PAIR, minItems=1, help=PAIRS_HELP)
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per pair: the points of its two values in each setting."""
        sweeps = self.sweeps(matrix)
        pairs = [self.checked(matrix, pair, "pairs") for pair in self.pairs]
        return [Comparison(self._points(sweeps, pair)) for pair in pairs]

    def _points(self, sweeps: Sequence[Comparison], pair: Sequence[str]) -> list[Point]:
        points = []
        for sweep in sweeps:
            called = [*sweep.name, self.along]
            if set(pair) <= set(sweep.by(self.along)):
                both = sweep.at(self.along, pair).points
                points += [replace(point, called=called) for point in both]
        if len(points) < 2 * FEWEST_SETTINGS:
            names, settings = " and ".join(pair), len(points) // 2
            raise UserError(
                f"pairs names {names}, which {settings} settings have together; an average "
                f"takes at least {FEWEST_SETTINGS}, so judge them one by one (kind gain)"
            )
        return points

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause with one array: each setting's mean difference over seeds, less the margin."""
        pairs = zip(values[::2], values[1::2], strict=True)
        return [[np.array([np.mean(above(first, second, self.margin)) for first, second in pairs])]]

    def contrast(self, difference: Number) -> SignedRanks:
        """The differences in all settings as signed ranks."""
        return SignedRanks.of(np.round(difference, 9))

    def side(self, comparison: Comparison, values: Sequence[float]) -> int:
        """Whether the test of single values is for the claim (1), against it (-1), or neither
        (0)."""
        ((difference,),) = self.clauses(comparison, values)
        ranks = self.contrast(difference)
        return int(ranks.p_above() <= ALPHA) - int((-ranks).p_above() <= ALPHA)

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The mean difference, in how many settings it is above 0, and the p-value, as text."""
        ((difference,),) = self.clauses(comparison, values)
        ranks = self.contrast(difference)
        first, second = (self.value_name(point, names) for point in comparison.points[:2])
        mean = self.number(ranks.mean + self.margin)
        return (
            f"{first} minus {second} {mean} on average{margin_text(self.margin)}, "
            f"larger in {ranks.above} of {ranks.n} settings (p = {ranks.p_above():.2g})"
        )
