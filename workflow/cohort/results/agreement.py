"""One rule for whether our runs agree with the number that a paper prints.

The paper's number agrees if the 90 % interval of the difference lies within a margin (two one-sided
tests), differs if the 95 % interval lies outside it, and otherwise our runs cannot tell. The margin
is two points, and near the ends of the scale half of what is left: where a paper prints 1 % of
errors, 2 % are not the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cohort.core.lazy import lazy
from cohort.results.intervals import ALPHA, LEAST_SEEDS, Sample

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazy("scipy.special")

POINTS = 0.02
JUDGED = ("%", "points")
"""The units of accuracies and of their differences; numbers in other units get no verdict."""
Verdict = Literal["agrees", "differs", "cannot tell"]
# The level of the F test of a printed deviation. At 5 % three seeds mostly overlook one that is
# three times too small; one that is right loses little by being doubted.
DOUBT = 0.4
DIGITS = 9  # of what is compared with the margin, so that 46.61 - 44.61 is 2 and not a little more


@dataclass(frozen=True)
class Agreement:
    """By how much our mean exceeds the paper's value, the 95 % interval of this difference, and the
    `verdict`: agrees, differs or cannot tell. A single run, or a difference that is not
    finite, has neither interval nor verdict."""

    difference: float
    interval: tuple[float, float] | None
    verdict: Verdict | None


def margin_of(printed: float, unit: str) -> float:
    """The largest difference from a printed accuracy, or difference of accuracies, that agrees: two
    points, but at most half of the distance from the number to the nearer end of its scale."""
    lowest = 0.0 if unit == "%" else -1.0
    return min(POINTS, (printed - lowest) / 2, (1 - printed) / 2)


def agreement(
    ours: Sequence[float], paper: float, sd: float | None = None, runs: int = 1, *, margin: float
) -> Agreement:
    """Compare our runs with the mean that a paper prints, of so many runs with this deviation if it
    prints that too; all numbers, the margin too, share a unit."""
    sample = Sample.of(ours)
    difference = sample.mean - paper
    if sample.n < 2 or not math.isfinite(difference):
        return Agreement(difference, None, None)
    error, freedom = _standard_error(sample, sd, runs)
    half = error * float(special.stdtrit(freedom, 1 - ALPHA / 2))
    inner = error * float(special.stdtrit(freedom, 1 - ALPHA))
    verdict: Verdict = "cannot tell"
    if error or sample.n >= LEAST_SEEDS:  # few runs may be equal by chance
        if round(abs(difference) + inner - margin, DIGITS) <= 0:
            verdict = "agrees"
        elif round(abs(difference) - half - margin, DIGITS) > 0:
            verdict = "differs"
    return Agreement(difference, (difference - half, difference + half), verdict)


def _standard_error(ours: Sample, sd: float | None, runs: int) -> tuple[float, float]:
    """The standard error of our mean less the paper's, and its degrees of freedom.

    The degrees of freedom are Welch's, but never more than ours alone: Welch's is too generous to
    two or three runs beside ten. The paper's own error counts if it rests on three runs and our
    seeds do not contradict it. Otherwise it is at least as large as ours, run by run and as a
    whole.
    """
    own, printed = ours.sd**2 / ours.n, (sd or 0.0) ** 2 / max(runs, 1)
    if _is_believed(ours, sd, runs):
        both = own + printed
        welch = both**2 / (own**2 / (ours.n - 1) + printed**2 / (runs - 1)) if both else 1.0
        return math.sqrt(both), min(welch, ours.n - 1.0)
    borrowed = max(printed, ours.sd**2 / max(runs, 1), own)
    return math.sqrt(own + borrowed), ours.n - 1.0


def _is_believed(ours: Sample, sd: float | None, runs: int) -> bool:
    """Whether the paper prints a deviation over enough runs, and our runs do not contradict it.

    Papers print deviations over the last rounds of a run, or 0.00. An F test asks whether ours is
    so much larger that theirs is not of the same kind; a deviation larger than ours is believed.
    """
    if sd is None or runs < LEAST_SEEDS:
        return False
    if not sd:
        return not ours.sd
    return float(special.fdtrc(ours.n - 1, runs - 1, (ours.sd / sd) ** 2)) > DOUBT
