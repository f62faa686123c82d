"""Tests of the differences in several settings: Wilcoxon's signed ranks, exact with ties too, and
signs, which hold for skewed differences as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    """One difference per setting. Two tests ask whether their center is above 0: signed ranks,
    which suppose that differences lie symmetrically, and signs, which suppose nothing. `interval`
    has those centers that not both tests reject."""

    unit: ClassVar[str] = "settings"

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> SignedRanks:
        array = np.atleast_1d(np.asarray(values, dtype=float))
        return cls(**vars(Sample.of(array)), values=tuple(array.tolist()))

    def __neg__(self) -> SignedRanks:
        return SignedRanks.of([-value for value in self.values])

    def p_above(self) -> float:
        """The one-sided p-value that the center is not above 0: the larger one of both tests."""
        return max(self.signed_rank_test(), self._sign_test())

    def signed_rank_test(self) -> float:
        """Wilcoxon's one-sided p-value; differences of 0 are left out."""
        differences = np.array([value for value in self.values if value])
        ranks = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # halves as wholes
        counts = _count_signings(ranks)
        return float(counts[ranks[differences > 0].sum() :].sum() / counts.sum())

    def p_value(self) -> float:
        return min(1.0, 2 * min(self.p_above(), (-self).p_above()))

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of the center: the wider ends of those of the signed-rank test, over means
        of two differences each, and of the sign test, over the differences themselves."""
        array = np.array(self.values)
        means = np.sort((array[:, None] + array)[np.triu_indices(self.n)] / 2)
        by_ranks = _kept_ends(means, _count_signings(np.arange(1, self.n + 1)), level)
        by_signs = _kept_ends(np.sort(array), _count_signings(np.ones(self.n, dtype=int)), level)
        return min(by_ranks[0], by_signs[0]), max(by_ranks[1], by_signs[1])


def _kept_ends(ordered: np.ndarray, ways: np.ndarray, level: float) -> tuple[float, float]:
    """The lowest and highest of the ordered values that a test does not reject. `ways` counts, for
    each value of its statistic, the equally likely signs that give it."""
    below = np.cumsum(ways) / ways.sum()
    left_out = int((below <= level / 2 + 1e-12).sum())
    if not left_out:
        return -np.inf, np.inf
    return float(ordered[left_out - 1]), float(ordered[-left_out])


def _count_signings(ranks: np.ndarray) -> np.ndarray:
    """Count the ways to sign these ranks so that the positive ones add up to 0, 1, 2, and so on."""
    ways = np.zeros(int(ranks.sum()) + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    return ways
