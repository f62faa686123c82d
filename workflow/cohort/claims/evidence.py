"""The evidence for a verdict, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cohort.claims.claim import Claim, called, short
from cohort.claims.decision import (
    HELD,
    LEAST_SEEDS,
    MOST_SEEDS,
    NOT_HELD,
    UNDECIDED,
    Deciding,
)
from cohort.claims.matrix import Comparison, Point
from cohort.claims.values import Value
from cohort.metrics.names import Names

CROSS, OPEN = "✗", "?"
MARKS = {NOT_HELD: f"{CROSS} ", UNDECIDED: f"{OPEN} "}
NAMED = 3  # how many of the points without a value the evidence names


@dataclass(frozen=True)
class Valued:
    """A comparison with the values of its points; it can be judged only if it is `whole`.

    `word` is the verdict on it alone, empty if there is none; `deciding` says how clear that is.
    """

    comparison: Comparison
    values: list[Value]
    whole: bool
    word: str = ""
    deciding: Deciding | None = None


def evidence(claim: Claim, found: Sequence[Valued], names: Names, more: str) -> str:
    """The numbers of all comparisons that are whole, each with its mark, and what else to say."""
    whole = [one for one in found if one.whole]
    lines = []
    for one in whole:
        name = ", ".join(short(label, value, names) for label, value in one.comparison.name.items())
        numbers = claim.shown(one.comparison, [value.value for value in one.values], names)
        lines.append(
            MARKS.get(one.word, "")
            + (f"{name}: " if name and len(found) > 1 else "")
            + numbers
            + _interval(claim, one.deciding)
            + _never(one, names)
        )
    heads = [claim.opening(whole[0].comparison, names)] if whole else []
    if len(whole) > 1 and whole[0].word:
        heads.append(f"{sum(one.word == HELD for one in whole)} of {len(whole)} hold")
    opening = "".join(f"{head}: " for head in heads if head)
    return "; ".join(part for part in (opening + "; ".join(lines), more) if part)


def statistics(claim: Claim, found: Sequence[Valued], names: Names) -> str:
    """Number of runs, mean, standard deviation and interval of each point, once."""
    texts: dict[str, None] = {}
    for one in found:
        for point, value in zip(one.comparison.points, one.values, strict=True):
            sample = value.sample
            if sample.n:
                text = f"{named(point, one.comparison, names)}: {claim.number(sample.mean)}"
                low, high = map(claim.number, sample.interval())
                spread = f" ± {claim.number(sample.sd)}, {low} to {high}" if sample.n > 1 else ""
                texts[f"{text}{spread} (n = {sample.n})"] = None
    return "; ".join(texts)


def lacking(comparisons: Sequence[Comparison], values: Sequence[Value], names: Names) -> str:
    """The names of the points without a value, or of the first of them."""
    found: dict[tuple[str, ...], str] = {}
    for comparison, mine in each(comparisons, values):
        found |= {
            key(point): named(point, comparison, names)
            for point, value in zip(comparison.points, mine, strict=True)
            if not value.known
        }
    words = list(found.values())
    more = len(words) - NAMED
    return " / ".join(words[:NAMED]) + (f" and {more} more" if more > 0 else "")


def too_few(seeds: int) -> str:
    """Why so few seeds give no word."""
    noun = "seed" if seeds == 1 else "seeds"
    return f"{seeds} {noun} in common, at least {LEAST_SEEDS} are needed"


def more_seeds(seeds: int | None, had: int, seconds: float) -> str:
    """How many seeds would decide a claim, and how long the further ones would take."""
    if seeds is None:
        return f"not even {MOST_SEEDS} seeds would decide it if means and spread stay as they are"
    more = seeds - had
    hours, known = more * seconds / 3600, seconds == seconds
    time = f", about {hours:.2g} hours" if hours >= 1 else f", about {hours * 60:.2g} minutes"
    return (
        f"{seeds} seeds would decide it if means and spread stay as they are "
        f"({more} more{time if known else ''})"
    )


def each(
    comparisons: Sequence[Comparison], values: Sequence[Value]
) -> Iterator[tuple[Comparison, list[Value]]]:
    """Each comparison with the values of its points."""
    rest = iter(values)
    for comparison in comparisons:
        yield comparison, [next(rest) for _ in comparison.points]


def named(point: Point, comparison: Comparison, names: Names) -> str:
    """The name of a point, with the labels that distinguish its comparison."""
    rest = (f", {short(label, value, names)}" for label, value in comparison.name.items())
    return called(point, names) + "".join(rest)


def key(point: Point) -> tuple[str, ...]:
    """What two points that stand for the same cells have in common."""
    return point.experiment, *point.labels.values()


def _interval(claim: Claim, deciding: Deciding | None) -> str:
    """By how much the comparison exceeds what the claim asks, its interval and number of seeds."""
    if deciding is None:
        return ""
    sample = deciding.contrast
    low, high = sample.interval(deciding.level)
    mean, low_text, high_text = (
        f"{'+' if value > 0 else ''}{claim.number(value)}" for value in (sample.mean, low, high)
    )
    return f" [{mean}, {low_text} to {high_text}, n = {sample.n}]"


def _never(found: Valued, names: Names) -> str:
    """How many runs of each point did not reach the threshold."""
    return "".join(
        f", not reached by {value.censored} of {value.n} runs ({called(point, names)})"
        for point, value in zip(found.comparison.points, found.values, strict=True)
        if value.censored and value.n > 1
    )
