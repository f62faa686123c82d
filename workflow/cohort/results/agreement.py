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
class Printed:
    """A mean that a paper prints, with the deviation over its runs if it prints that too."""

    value: float
    sd: float | None = None
    runs: int = 1


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


def agreement(ours: Sequence[float], paper: Printed, margin: float) -> Agreement:
    """Compare our runs with a paper's value; all numbers, the margin too, share a unit."""
    sample = Sample.of(ours)
    difference = sample.mean - paper.value
    if sample.n < 2 or not math.isfinite(difference):
        return Agreement(difference, None, None)
    error, freedom = standard_error(sample, paper)
    half = error * float(special.stdtrit(freedom, 1 - ALPHA / 2))
    inner = error * float(special.stdtrit(freedom, 1 - ALPHA))
    interval = (difference - half, difference + half)
    verdict = _verdict((difference - inner, difference + inner), interval, margin)
    if not error and sample.n < LEAST_SEEDS:
        verdict = "cannot tell"  # few runs may be equal by chance
    return Agreement(difference, interval, verdict)


def standard_error(ours: Sample, paper: Printed) -> tuple[float, float]:
    """The standard error of our mean less the paper's, and its degrees of freedom.

    The degrees of freedom are Welch's, but never more than ours alone: Welch's is too generous to
    two or three runs beside ten. The paper's own error counts if it rests on three runs and our
    seeds do not contradict it. Otherwise it is at least as large as ours, run by run and as a
    whole.
    """
    own, printed = ours.sd**2 / ours.n, (paper.sd or 0.0) ** 2 / max(paper.runs, 1)
    if is_believed(ours, paper):
        both = own + printed
        welch = both**2 / (own**2 / (ours.n - 1) + printed**2 / (paper.runs - 1)) if both else 1.0
        return math.sqrt(both), min(welch, ours.n - 1.0)
    borrowed = max(printed, ours.sd**2 / max(paper.runs, 1), own)
    return math.sqrt(own + borrowed), ours.n - 1.0


def is_believed(ours: Sample, paper: Printed) -> bool:
    """Whether the paper prints a deviation over enough runs, and our runs do not contradict it.

    Papers print deviations over the last rounds of a run, or 0.00. An F test asks whether ours is
    so much larger that theirs is not of the same kind; a deviation larger than ours is believed.
    """
    if paper.sd is None or paper.runs < LEAST_SEEDS:
        return False
    if not paper.sd:
        return not ours.sd
    ratio = (ours.sd / paper.sd) ** 2
    return float(special.fdtrc(ours.n - 1, paper.runs - 1, ratio)) > DOUBT


def _verdict(inner: tuple[float, float], outer: tuple[float, float], margin: float) -> Verdict:
    """The verdict from a difference's interval of 90 % (`inner`) and of 95 % (`outer`)."""
    if round(max(-inner[0], inner[1]) - margin, DIGITS) <= 0:
        return "agrees"
    is_outside = round(max(outer[0], -outer[1]) - margin, DIGITS) > 0
    return "differs" if is_outside else "cannot tell"
