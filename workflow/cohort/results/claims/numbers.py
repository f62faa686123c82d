"""Every comparison of a judged claim with its numbers, as texts, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cohort.results.claims.claim import Claim, called, short
from cohort.results.claims.evidence import Valued, in_seeds, key
from cohort.results.claims.matrix import Comparison, Point
from cohort.results.claims.values import Value
from cohort.results.claims.verdict import Verdict
from cohort.results.names import Names

Numbers = dict[str, Any]


def compared(
    claim: Claim, comparisons: Sequence[Comparison], runs: Verdict, paper: Verdict, names: Names
) -> list[Numbers]:
    """Each comparison: what tells it from the others, the verdicts on it, and its points.

    `comparisons` have the rounds of full runs. A verdict without findings, as on generated data,
    leaves its numbers out.
    """
    return [
        _comparison(claim, one, _at(runs, place), _at(paper, place), names)
        for place, one in enumerate(comparisons)
    ]


def _at(verdict: Verdict, place: int) -> Valued | None:
    return verdict.found[place] if verdict.found else None


def _comparison(
    claim: Claim, one: Comparison, ours: Valued | None, paper: Valued | None, names: Names
) -> Numbers:
    mine: Sequence[Value | None] = ours.values if ours else [None] * len(one.points)
    theirs = _by_point(paper)
    return {
        "name": ", ".join(short(label, value, names) for label, value in one.name.items()),
        "measured": ours.word if ours else "",
        "paper": paper.word if paper else "",
        "difference": _difference(claim, ours),
        "shown": _shown(claim, ours, names),
        "paper_shown": _shown(claim, paper, names),
        "points": [
            _named(claim, point, names)
            | ({"ours": _runs(claim, value)} if value and value.n else {})
            | ({"paper": claim.number(theirs[_place(point)])} if _place(point) in theirs else {})
            for point, value in zip(one.points, mine, strict=True)
        ],
    }


def _named(claim: Claim, point: Point, names: Names) -> Numbers:
    """A point's name, with the value along which the claim compares, and the cells behind it."""
    along = getattr(claim, "along", "")
    apart = along in point.labels and along not in point.called
    compared = f"{short(along, point.labels[along], names)}, " if apart else ""
    return {
        "name": compared + called(point, names),
        "experiment": point.experiment,
        "labels": point.labels,
        "at": str(point.at),
    }


def _by_point(paper: Valued | None) -> dict[tuple[str, ...], float]:
    """The paper's value of each point that has one."""
    if paper is None:
        return {}
    pairs = zip(paper.comparison.points, paper.values, strict=True)
    return {_place(point): value.value for point, value in pairs if value.known}


def _place(point: Point) -> tuple[str, ...]:
    """A point by its cells, its metric and its round."""
    return *key(point), point.metric, str(point.at)


def _runs(claim: Claim, value: Value) -> Numbers:
    """Mean, deviation and interval of the runs behind a point."""
    sample = value.sample
    found: Numbers = {"mean": claim.number(value.value), "n": sample.n, "planned": value.planned}
    if sample.n > 1:
        low, high = map(claim.number, sample.interval())
        found |= {"sd": claim.number(sample.sd), "low": low, "high": high}
    return found


def _difference(claim: Claim, found: Valued | None) -> Numbers | None:
    """By how much our runs exceed what the claim asks, with its bounds and in how many seeds."""
    if found is None or found.deciding is None or claim.is_about_every_run():
        return None
    clear = found.deciding
    mean, low, high = (
        f"{'+' if value > 0 else ''}{claim.number(value)}"
        for value in (clear.contrast.mean, clear.low, clear.high)
    )
    return {"mean": mean, "low": low, "high": high, "seeds": in_seeds(clear)}


def _shown(claim: Claim, found: Valued | None, names: Names) -> str:
    """The evidence in one line, where all values are known."""
    if found is None or not found.whole:
        return ""
    return claim.shown(found.comparison, [value.value for value in found.values], names)
