"""The evidence for a verdict, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cohort.claims.claim import Claim, called, short
from cohort.claims.decision import (
    HELD,
    LEANS_HELD,
    LEANS_NOT_HELD,
    MOST_SEEDS,
    NOT_HELD,
    TIE,
    UNDECIDED,
    Deciding,
)
from cohort.claims.matrix import Comparison, Point
from cohort.claims.values import Value, last_round
from cohort.metrics.intervals import LEAST_SEEDS
from cohort.metrics.names import Names

CROSS, OPEN, EQUAL = "✗", "?", "="
MARKS = {
    NOT_HELD: f"{CROSS} ",
    LEANS_NOT_HELD: f"{CROSS} ",
    UNDECIDED: f"{OPEN} ",
    TIE: f"{EQUAL} ",
}
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
            + _remarks(one, names)
        )
    heads = [claim.opening(whole[0].comparison, names)] if whole else []
    if len(whole) > 1 and whole[0].word:
        heads.append(f"{sum(one.word in (HELD, LEANS_HELD) for one in whole)} of {len(whole)} hold")
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


def more_seeds(seeds: tuple[int, int], had: int, seconds: float) -> str:
    """How many seeds would decide a claim, and how long the fewest further ones would take."""
    fewest, _ = seeds
    if fewest > MOST_SEEDS:
        return f"more than {MOST_SEEDS} seeds would be needed to decide it"
    more = fewest - had
    hours = more * seconds / 3600
    time = f"{hours:.2g} hours" if hours >= 1 else f"{hours * 60:.2g} minutes"
    cost = f", about {time}" if seconds == seconds else ""
    return (
        f"{seeds_text(seeds)} seeds would decide it (10 to 90 % of what these seeds leave "
        f"possible; at least {more} more{cost})"
    )


def seeds_text(seeds: tuple[int, int]) -> str:
    """A range of numbers of seeds as text."""
    low, high = (f"more than {MOST_SEEDS}" if count > MOST_SEEDS else str(count) for count in seeds)
    return low if low == high else f"{low} to {high}"


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
    """By how much the comparison exceeds what the claim asks, the bounds of that, and in how many
    seeds it does."""
    if deciding is None:
        return ""
    if claim.is_about_every_run():
        return f" [in {deciding.contrast.above} of {deciding.contrast.n} runs]"
    mean, low, high = (
        f"{'+' if value > 0 else ''}{claim.number(value)}"
        for value in (deciding.contrast.mean, deciding.low, deciding.high)
    )
    return f" [{mean}, {low} to {high}, {in_seeds(deciding)}]"


def in_seeds(deciding: Deciding) -> str:
    """In how many seeds (or settings) the contrast is above 0, or that it is 0 in all of them."""
    contrast = deciding.contrast
    if not contrast.above and not contrast.below:
        return f"tie in all {contrast.n} {contrast.unit}"
    return f"above 0 in {contrast.above} of {contrast.n} {contrast.unit}"


def _remarks(valued: Valued, names: Names) -> str:
    """How many runs of each point did not reach the threshold, diverged, or only guess."""
    remarks = []
    for point, value in zip(valued.comparison.points, valued.values, strict=True):
        counts = [
            (value.censored, "do not reach it"),
            (value.diverged, "diverged"),
            (value.at_chance, "at chance level"),
        ]
        remarks += [
            f", {count} of {value.n} runs {what} ({called(point, names)})"
            for count, what in counts
            if count and value.n > 1
        ]
    if any(value.censored and value.n > 1 for value in valued.values):
        rounds = last_round(valued.values) + 1
        remarks.append(f", means restricted to {rounds:.6g} rounds")
    return "".join(remarks)
