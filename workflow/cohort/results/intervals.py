"""Intervals of means by Student's t, exact sign tests, Holm's correction for several of them, and
whether our runs agree with the number that a paper prints.

Planning imports this module, so scipy is lazy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from scipy import special, stats
else:
    special, stats = lazy("scipy.special"), lazy("scipy.stats")

ALPHA = 0.05
LEAST_SEEDS = 3  # fewer say nothing
NOT_ENOUGH = "not enough runs"  # the verdict on so few
ENOUGH_SEEDS = 5  # fewer only lean: the sign test needs five on one side
POINTS = 0.02
JUDGED = ("%", "points")
"""The units of accuracies and of their differences; numbers in other units get no verdict."""
Verdict = Literal["agrees", "differs", "cannot tell"]
# The level of the F test of a printed deviation. At 5 % three seeds mostly overlook one that is
# three times too small; one that is right loses little by being doubted.
DOUBT = 0.4
DIGITS = 9  # of what is compared with the margin, so that 46.61 - 44.61 is 2 and not a little more


@dataclass(frozen=True)
class Sample:
    """The mean and the standard deviation (with n - 1) of n values, one per run or per pair, and
    how many of them are above and below 0."""

    unit: ClassVar[str] = "seeds"  # what the values are of

    n: int
    mean: float
    sd: float
    above: int = 0
    below: int = 0

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> Sample:
        """Summarize values; a single one has no standard deviation."""
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
        n = len(array)
        mean = float(array.mean()) if n else math.nan
        sd = float(array.std(ddof=1)) if n > 1 else math.nan
        sd = 0.0 if n > 1 and np.ptp(array) == 0 else sd
        return Sample(n, mean, sd, int((array > 0).sum()), int((array < 0).sum()))

    def __neg__(self) -> Sample:
        return Sample(self.n, -self.mean, self.sd, self.below, self.above)

    def scaled(self, factor: float) -> Sample:
        """The sample with its values multiplied by `factor`, in another unit."""
        return replace(self, mean=self.mean * factor, sd=self.sd * factor)

    def half_width(self, level: float = ALPHA) -> float:
        """How far the interval of confidence 1 - `level` reaches to each side of the mean."""
        if self.n < 2:
            return math.inf
        return float(special.stdtrit(self.n - 1, 1 - level / 2)) * self.sd / math.sqrt(self.n)

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of confidence 1 - `level` for the mean."""
        half = self.half_width(level)
        return self.mean - half, self.mean + half

    def verdict(self, better: str) -> str:
        """The verdict on a difference from 0, `better` or `worse`, leaning so, or `undecided`,
        where high or low values are better."""
        if self.n < LEAST_SEEDS:
            return NOT_ENOUGH
        ahead = self if better == "high" else -self
        side = "better" if ahead.p_above() <= ALPHA else "worse"
        if not better or min(ahead.p_above(), (-ahead).p_above()) > ALPHA:
            return "undecided"
        return side if self.n >= ENOUGH_SEEDS else f"leans {side}"

    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that the mean is 0."""
        return min(1.0, 2 * min(self._t_test(), (-self)._t_test()))

    def p_above(self) -> float:
        """The one-sided p-value of the hypothesis that the typical value is not above 0: the larger
        of those of the t-test and, from ENOUGH_SEEDS values on, of the exact sign test."""
        return self._t_test() if self.n < ENOUGH_SEEDS else max(self._t_test(), self._sign_test())

    def _t_test(self) -> float:
        if self.n < 2 or self.mean == 0:
            return 1.0
        if self.sd == 0:
            return float(self.mean < 0)
        return float(special.stdtr(self.n - 1, -self.mean / self.sd * math.sqrt(self.n)))

    def _sign_test(self) -> float:
        """The probability of so many or more values above 0 if half of all are; a tie is not
        above."""
        return float(special.bdtrc(self.above - 1, self.n, 0.5))


@dataclass(frozen=True)
class SignedRanks(Sample):
    """One difference per setting. Two tests ask whether their center is above 0: Wilcoxon's signed
    ranks, exact with ties too, which suppose that differences lie symmetrically, and signs, which
    suppose nothing. `interval` has those centers that not both tests reject."""

    unit: ClassVar[str] = "settings"

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> SignedRanks:
        array = np.atleast_1d(np.asarray(values, dtype=float))
        return cls(**vars(Sample.of(array)), values=tuple(array.tolist()))

    def __neg__(self) -> SignedRanks:
        return SignedRanks.of([-value for value in self.values])

    def p_above(self) -> float:
        """The one-sided p-value that the center is not above 0: the larger one of both tests. Ranks
        leave out differences of 0."""
        differences = np.array([value for value in self.values if value])
        ranks = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # halves as wholes
        ways = _count_signings(ranks)
        by_ranks = ways[ranks[differences > 0].sum() :].sum() / ways.sum()
        return max(float(by_ranks), self._sign_test())

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of the center: the wider ends of those of the signed-rank test, over means
        of two differences each, and of the sign test, over the differences themselves."""
        array = np.array(self.values)
        means = (array[:, None] + array)[np.triu_indices(self.n)] / 2
        ends = []
        for ordered, ranks in ((means, np.arange(1, self.n + 1)), (array, np.ones(self.n, int))):
            ways = _count_signings(ranks)
            left_out = int((np.cumsum(ways) / ways.sum() <= level / 2 + 1e-12).sum())
            padded = np.sort(np.append(ordered, [-np.inf, np.inf]))
            ends.append((float(padded[left_out]), float(padded[-1 - left_out])))
        return min(low for low, _ in ends), max(high for _, high in ends)


def _count_signings(ranks: np.ndarray) -> np.ndarray:
    """Count the ways to sign these ranks so that the positive ones add up to 0, 1, 2, and so on."""
    ways = np.ones(1)
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    return ways


def paired_differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Sample:
    """The differences ours - theirs over the seeds that both have, as a sample."""
    return Sample.of([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def holm_levels(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level at which Holm's procedure tests each hypothesis, so that all decisions together
    are wrong with a probability of at most `alpha`.

    A hypothesis is rejected if its p-value is at most its level: an interval of confidence
    1 - level around its mean then lies on one side of 0.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels, last = [alpha] * len(p_values), 0.0  # the level of the first that is not rejected
    for rank, index in enumerate(order):
        levels[index] = last or alpha / (len(p_values) - rank)
        if not last and p_values[index] > levels[index]:
            last = levels[index]
    return levels


def margin_of(printed: float, unit: str) -> float:
    """The largest difference from a printed accuracy, or difference of accuracies, that agrees: two
    points, but at most half of the distance from the number to the nearer end of its scale. Where a
    paper prints 1 % of errors, 2 % are not the same result."""
    lowest = 0.0 if unit == "%" else -1.0
    return min(POINTS, (printed - lowest) / 2, (1 - printed) / 2)


def agreement(
    ours: Sequence[float], paper: float, sd: float | None = None, runs: int = 1, *, margin: float
) -> tuple[tuple[float, float] | None, Verdict | None]:
    """Compare our runs with the mean that a paper prints, of so many runs with this deviation if it
    prints that too; all numbers, the margin too, share a unit. Return the 95 % interval of the
    difference and the verdict; a single run, or one without a finite difference, has neither.

    They agree if the 90 % interval of the difference lies within the margin (two one-sided tests),
    differ if the 95 % interval lies outside it, and otherwise our runs cannot tell.
    """
    sample = Sample.of(ours)
    difference = sample.mean - paper
    if sample.n < 2 or not math.isfinite(difference):
        return None, None
    error, freedom = _standard_error(sample, sd, runs)
    half = error * float(special.stdtrit(freedom, 1 - ALPHA / 2))
    inner = error * float(special.stdtrit(freedom, 1 - ALPHA))
    verdict: Verdict = "cannot tell"
    if error or sample.n >= LEAST_SEEDS:  # few runs may be equal by chance
        if round(abs(difference) + inner - margin, DIGITS) <= 0:
            verdict = "agrees"
        elif round(abs(difference) - half - margin, DIGITS) > 0:
            verdict = "differs"
    return (difference - half, difference + half), verdict


def _standard_error(ours: Sample, sd: float | None, runs: int) -> tuple[float, float]:
    """The standard error of our mean less the paper's, and its degrees of freedom.

    The degrees of freedom are Welch's, but never more than ours alone: Welch's is too generous to
    two or three runs beside ten. The paper's own error counts if it rests on three runs and our
    seeds do not contradict it: papers print deviations over the last rounds of a run, or 0.00, and
    an F test asks whether ours is so much larger that theirs is not of the same kind. Otherwise it
    is at least as large as ours, run by run and as a whole.
    """
    own, printed = ours.sd**2 / ours.n, (sd or 0.0) ** 2 / max(runs, 1)
    is_believed = sd is not None and runs >= LEAST_SEEDS
    if is_believed and sd:
        is_believed = float(special.fdtrc(ours.n - 1, runs - 1, (ours.sd / sd) ** 2)) > DOUBT
    elif is_believed:
        is_believed = not ours.sd
    if is_believed:
        both = own + printed
        welch = both**2 / (own**2 / (ours.n - 1) + printed**2 / (runs - 1)) if both else 1.0
        return math.sqrt(both), min(welch, ours.n - 1.0)
    borrowed = max(printed, ours.sd**2 / max(runs, 1), own)
    return math.sqrt(own + borrowed), ours.n - 1.0
