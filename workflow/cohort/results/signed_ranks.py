"""Wilcoxon's signed-rank test of the differences in several settings, exact with ties too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.results.intervals import ALPHA, Sample

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazy("scipy.stats")


@dataclass(frozen=True)
class SignedRanks(Sample):
    """One difference per setting. What is tested is whether their center is above 0, by signed
    ranks; `interval` has those centers that the test does not reject."""

    unit: ClassVar[str] = "settings"

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> SignedRanks:
        array = np.atleast_1d(np.asarray(values, dtype=float))
        sample = Sample.of(array)
        return cls(
            sample.n, sample.mean, sample.sd, sample.above, sample.below, tuple(array.tolist())
        )

    def __neg__(self) -> SignedRanks:
        opposite = super().__neg__()
        return replace(
            self,
            mean=opposite.mean,
            above=self.below,
            below=self.above,
            values=tuple(-value for value in self.values),
        )

    def p_above(self) -> float:
        """The one-sided p-value; differences of 0 are left out."""
        differences = np.array([value for value in self.values if value])
        ranks = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # halves as wholes
        counts = _ways(ranks)
        return float(counts[ranks[differences > 0].sum() :].sum() / counts.sum())

    def p_value(self) -> float:
        return min(1.0, 2 * min(self.p_above(), (-self).p_above()))

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """From the lowest to the highest center: means of two differences, in order, without as
        many at each end as the test may reject."""
        array = np.array(self.values)
        pairs = np.triu_indices(self.n)
        means = np.sort((array[:, None] + array)[pairs] / 2)
        counts = _ways(np.arange(1, self.n + 1))
        below = np.cumsum(counts) / counts.sum()
        left_out = int((below <= level / 2 + 1e-12).sum())
        if not left_out:
            return -np.inf, np.inf
        return float(means[left_out - 1]), float(means[-left_out])


def _ways(ranks: np.ndarray) -> np.ndarray:
    """In how many ways signs can be given to these ranks such that the positive ones add up to 0,
    to 1, to 2, and so on."""
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    return ways
