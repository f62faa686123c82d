"""Decides whether a claim holds, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cohort.claims.claim import Claim, called, short
from cohort.claims.matrix import Comparison, Point
from cohort.claims.values import Value
from cohort.metrics.names import Names

HELD, NOT_HELD = "held", "not held"
NOT_ENOUGH, NO_PAPER = "not enough runs", "no value"
CROSS = "✗"
NAMED = 3  # how many of the points without a value the evidence names


@dataclass(frozen=True)
class Verdict:
    """The verdict in a word, its evidence as text, and the value of each point, once."""

    word: str
    evidence: str
    values: list[Value]


@dataclass(frozen=True)
class Valued:
    """A comparison with the values of its points; it can be judged only if it is `whole`."""

    comparison: Comparison
    values: list[Value]
    whole: bool


def judge_runs(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Verdict:
    """Judge a claim on our runs; there is no verdict before all of them are finished.

    `values` are those of the points of all comparisons, in order.
    """
    found = [Valued(one, mine, _complete(mine)) for one, mine in _each(comparisons, values)]
    points = _once(comparisons, values)
    lacking = _lacking(comparisons, values, names)
    unplanned = sum(not value.planned for value in points.values())
    gap = f"lacks runs of {_named(lacking)}" if lacking else ""
    gap += f" ({unplanned} of {len(points)} settings are not planned)" if unplanned else ""
    evidence = _evidence(claim, found, names, gap)
    return Verdict(_word(claim, found, NOT_ENOUGH), evidence, list(points.values()))


def judge_paper(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Verdict:
    """Judge a claim on the paper's own values, if it has enough of them.

    `values` are those of the points of all comparisons, in order.
    """
    found = [_reduced(claim, one, mine) for one, mine in _each(comparisons, values)]
    lacking = _lacking(comparisons, values, names)
    some = any(value.known for value in values)
    gap = f"no value for {_named(lacking)}" if lacking and some else ""
    evidence = _evidence(claim, found, names, gap)
    return Verdict(
        _word(claim, found, NO_PAPER), evidence, list(_once(comparisons, values).values())
    )


def _complete(values: Sequence[Value]) -> bool:
    return all(value.known for value in values)


def _reduced(claim: Claim, comparison: Comparison, values: list[Value]) -> Valued:
    """Drop the points without a value from a comparison, if it can do without them."""
    known = [
        (point, value)
        for point, value in zip(comparison.points, values, strict=True)
        if value.known
    ]
    points = [point for point, _ in known]
    if len(known) == len(values) or not claim.has_enough(points):
        return Valued(comparison, values, len(known) == len(values))
    return Valued(replace(comparison, points=points), [value for _, value in known], True)


def _word(claim: Claim, found: Sequence[Valued], otherwise: str) -> str:
    if not all(one.whole for one in found):
        return otherwise
    return HELD if all(_holds(claim, one) for one in found) else NOT_HELD


def _evidence(claim: Claim, found: Sequence[Valued], names: Names, lacking: str) -> str:
    whole = [one for one in found if one.whole]
    lines = []
    for one in whole:
        name = ", ".join(short(label, value, names) for label, value in one.comparison.name.items())
        numbers = claim.shown(one.comparison, _numbers(one), names)
        lines.append(
            ("" if _holds(claim, one) else f"{CROSS} ")
            + (f"{name}: " if name and len(found) > 1 else "")
            + numbers
        )
    heads = [claim.opening(whole[0].comparison, names)] if whole else []
    heads += (
        [f"{sum(_holds(claim, one) for one in whole)} of {len(whole)} hold"]
        if len(whole) > 1
        else []
    )
    opening = "".join(f"{head}: " for head in heads if head)
    return "; ".join(part for part in (opening + "; ".join(lines), lacking) if part)


def _holds(claim: Claim, found: Valued) -> bool:
    return claim.holds(found.comparison, _numbers(found))


def _numbers(found: Valued) -> list[float]:
    return [value.value for value in found.values]


def _each(
    comparisons: Sequence[Comparison], values: Sequence[Value]
) -> Iterator[tuple[Comparison, list[Value]]]:
    rest = iter(values)
    for comparison in comparisons:
        yield comparison, [next(rest) for _ in comparison.points]


def _once(
    comparisons: Sequence[Comparison], values: Sequence[Value]
) -> dict[tuple[str, ...], Value]:
    """The value of each point, even if several comparisons share it; if they differ, that of fewest
    runs."""
    points = [point for comparison in comparisons for point in comparison.points]
    found: dict[tuple[str, ...], Value] = {}
    for point, value in zip(points, values, strict=True):
        found[_key(point)] = min(found.get(_key(point), value), value, key=lambda one: one.n)
    return found


def _lacking(comparisons: Sequence[Comparison], values: Sequence[Value], names: Names) -> list[str]:
    """The names of the points without a value."""
    found: dict[tuple[str, ...], str] = {}
    for comparison, mine in _each(comparisons, values):
        name = "".join(
            f", {short(label, value, names)}" for label, value in comparison.name.items()
        )
        found |= {
            _key(point): called(point, names) + name
            for point, value in zip(comparison.points, mine, strict=True)
            if not value.known
        }
    return list(found.values())


def _named(words: Sequence[str]) -> str:
    more = len(words) - NAMED
    return " / ".join(words[:NAMED]) + (f" and {more} more" if more > 0 else "")


def _key(point: Point) -> tuple[str, ...]:
    return point.experiment, *point.labels.values()
