"""What to make of a claim, and why."""

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
NAMED = 3  # so many of the points that lack values are named


@dataclass(frozen=True)
class Verdict:
    """A word, the numbers that it comes from, and the values of every setting, each once."""

    word: str
    evidence: str
    values: list[Value]


@dataclass(frozen=True)
class Found:
    """A comparison with its values. What the paper lacks may be left out of it; where too little is left it is not `whole`."""

    comparison: Comparison
    values: list[Value]
    whole: bool


def judge_runs(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Verdict:
    """The verdict on our own runs: none before all of them are there. `values` are those of all comparisons' points, in order."""
    found = [
        Found(one, mine, all(value.known for value in mine))
        for one, mine in _each(comparisons, values)
    ]
    points = _once(comparisons, values)
    lacking = _lacking(comparisons, values, names)
    unplanned = sum(not value.planned for value in points.values())
    said = f"lacks runs of {_named(lacking)}" if lacking else ""
    said += f" ({unplanned} of {len(points)} settings are not planned)" if unplanned else ""
    return Verdict(
        _word(claim, found, NOT_ENOUGH), _evidence(claim, found, names, said), list(points.values())
    )


def judge_paper(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> Verdict:
    """The verdict on the paper's own values, where it has enough of them."""
    found = [_spared(claim, one, mine) for one, mine in _each(comparisons, values)]
    lacking = _lacking(comparisons, values, names)
    some = any(value.known for value in values)
    said = f"no value for {_named(lacking)}" if lacking and some else ""
    return Verdict(
        _word(claim, found, NO_PAPER),
        _evidence(claim, found, names, said),
        list(_once(comparisons, values).values()),
    )


def _spared(claim: Claim, comparison: Comparison, values: list[Value]) -> Found:
    known = [
        (point, value)
        for point, value in zip(comparison.points, values, strict=True)
        if value.known
    ]
    points = [point for point, _ in known]
    if len(known) == len(values) or not claim.enough(points):
        return Found(comparison, values, len(known) == len(values))
    return Found(replace(comparison, points=points), [value for _, value in known], True)


def _word(claim: Claim, found: Sequence[Found], otherwise: str) -> str:
    if not all(one.whole for one in found):
        return otherwise
    return HELD if all(_holds(claim, one) for one in found) else NOT_HELD


def _evidence(claim: Claim, found: Sequence[Found], names: Names, lacking: str) -> str:
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


def _holds(claim: Claim, found: Found) -> bool:
    return claim.holds(found.comparison, _numbers(found))


def _numbers(found: Found) -> list[float]:
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
    """The values by setting, for several comparisons may have one in common; the one of fewest runs where it is looked at twice."""
    points = [point for comparison in comparisons for point in comparison.points]
    found: dict[tuple[str, ...], Value] = {}
    for point, value in zip(points, values, strict=True):
        found[_key(point)] = min(found.get(_key(point), value), value, key=lambda one: one.n)
    return found


def _lacking(comparisons: Sequence[Comparison], values: Sequence[Value], names: Names) -> list[str]:
    """What the points without a value are called."""
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
