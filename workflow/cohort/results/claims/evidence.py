"""The evidence for a verdict, as text: every comparison with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from cohort.results.claims.claim import Claim, short_name
from cohort.results.claims.decision import HOLDS, MARKS, DecidingContrast
from cohort.results.claims.matrix import Comparison, Point
from cohort.results.claims.values import NEVER, Value, joined, last_round
from cohort.results.names import METRICS, Names

NAMED = 3  # how many of the points without a value the evidence names


@dataclass(frozen=True)
class Numbers:
    """A point's value, or the mean, deviation and interval of its runs, as text."""

    mean: str = ""
    sd: str = ""
    low: str = ""
    high: str = ""
    n: int = 0
    planned: int = 0


@dataclass(frozen=True)
class Difference:
    """By how much a comparison exceeds what its claim asks, the bounds of this difference, and in
    how many seeds it is above 0; a claim about every run has only the last."""

    mean: str
    low: str
    high: str
    seeds: str

    @property
    def text(self) -> str:
        """The difference with its bounds, and the number of seeds, in one text."""
        bounds = [self.mean, f"{self.low} to {self.high}"] if self.mean else []
        return ", ".join([*bounds, self.seeds])


@dataclass(frozen=True)
class Evidence:
    """The verdict on one comparison, by our runs or by the paper's values, and the numbers behind
    it: those of each point, and `shown`, which puts them in relation. Without a value for each
    point that it needs, a comparison has neither verdict nor relation."""

    numbers: list[Numbers]
    opening: str = ""
    shown: str = ""
    verdict: str = ""
    difference: Difference | None = None
    remarks: str = ""

    def text(self, name: str) -> str:
        """The numbers in one line, with a mark where the comparison of this name does not hold."""
        mark = f"{MARKS[self.verdict]} " if self.verdict in MARKS else ""
        opening = f"{name}: " if name else ""
        bracket = f" [{self.difference.text}]" if self.difference else ""
        return f"{mark}{opening}{self.shown}{bracket}{self.remarks}"


def evidence_of(
    claim: Claim,
    comparison: Comparison,
    values: Sequence[Value],
    names: Names,
    verdict: str = "",
    deciding: DecidingContrast | None = None,
    part: Comparison | None = None,
) -> Evidence:
    """The evidence of a comparison with the values of its points. `part` is the part of it that can
    be judged; by default the whole if all values are complete, else nothing."""
    if part is None and all(value.is_complete for value in values):
        part = comparison
    shown = [value.value for value in values if value.is_complete]
    return Evidence(
        numbers=[_numbers(claim, value) for value in values],
        opening=claim.opening(part, names) if part else "",
        shown=claim.shown(part, shown, names) if part else "",
        verdict=verdict,
        difference=_difference(claim, deciding) if deciding else None,
        remarks=_run_counts(claim, comparison, values, names) if part else "",
    )


def _numbers(claim: Claim, value: Value) -> Numbers:
    """Format the runs behind a point, or the paper's value for it."""
    sample = value.sample
    mean = claim.number(value.value) if value.is_complete or sample.n else ""
    if sample.n < 2 or value.value == NEVER:
        return Numbers(mean, n=sample.n, planned=value.planned)
    interval = sample.interval()
    if not claim.counts_rounds():
        interval = METRICS[claim.metric].clip_interval(sample.mean, interval)
    sd, low, high = map(claim.number, (sample.sd, *interval))
    return Numbers(mean, sd, low, high, sample.n, value.planned)


def _difference(claim: Claim, deciding: DecidingContrast) -> Difference:
    contrast = deciding.contrast
    if claim.is_about_every_run():
        return Difference("", "", "", f"in {contrast.above} of {contrast.n} runs")
    mean, low, high = (
        f"{'+' if value > 0 else ''}{claim.number(value) if abs(value) < NEVER else value}"
        for value in (contrast.mean, deciding.low, deciding.high)
    )
    low, high = (end.replace("inf", "∞") for end in (low, high))
    is_tie = not contrast.above and not contrast.below
    where = "tie in all" if is_tie else f"above 0 in {contrast.above} of"
    return Difference(mean, low, high, f"{where} {contrast.n} {contrast.unit}")


def evidence_text(
    comparisons: Sequence[Comparison], evidence: Sequence[Evidence], gap: str, names: Names
) -> str:
    """The numbers of all comparisons that could be made, how many hold, and the gap, as text."""
    several = len(comparisons) > 1
    titles = [comparison_name(comparison, names) if several else "" for comparison in comparisons]
    shown = [part for part in evidence if part.shown]
    lines = [part.text(title) for title, part in zip(titles, evidence, strict=True) if part.shown]
    opening = f"{shown[0].opening}: " if shown and shown[0].opening else ""
    if len(shown) > 1 and shown[0].verdict:
        hold = sum(part.verdict in HOLDS for part in shown)
        opening += f"{hold} of {len(shown)} hold: "
    return joined([opening + "; ".join(lines), gap])


def statistics_text(
    claim: Claim, comparisons: Sequence[Comparison], evidence: Sequence[Evidence], names: Names
) -> str:
    """Mean, deviation, interval and number of runs of each point as text, each point once."""
    texts: list[str] = []
    for comparison, part in zip(comparisons, evidence, strict=True):
        for point, numbers in zip(comparison.points, part.numbers, strict=True):
            spread = f" ± {numbers.sd}, {numbers.low} to {numbers.high}" if numbers.sd else ""
            name = _full_name(claim, point, comparison, names)
            texts.append(f"{name}: {numbers.mean}{spread} (n = {numbers.n})" if numbers.n else "")
    return joined(texts)


def missing_points(
    claim: Claim, comparisons: Sequence[Comparison], values: Sequence[Value], names: Names
) -> str:
    """The names of the points without a complete value, or of the first of them, as text."""
    missing: dict[tuple[str, ...], str] = {}
    for comparison, point_values in with_values(comparisons, values):
        missing |= {
            point.key: _full_name(claim, point, comparison, names)
            for point, value in zip(comparison.points, point_values, strict=True)
            if not value.is_complete
        }
    words = list(missing.values())
    more = len(words) - NAMED
    return " / ".join(words[:NAMED]) + (f" and {more} more" if more > 0 else "")


def with_values(
    comparisons: Sequence[Comparison], values: Sequence[Value]
) -> list[tuple[Comparison, list[Value]]]:
    """Pair each comparison with the values of its points; `values` holds all of them in order."""
    rest = iter(values)
    return [(comparison, list(islice(rest, len(comparison.points)))) for comparison in comparisons]


def comparison_name(comparison: Comparison, names: Names) -> str:
    """The label values that tell a comparison from the others of its claim, as text."""
    return ", ".join(short_name(label, value, names) for label, value in comparison.name.items())


def _full_name(claim: Claim, point: Point, comparison: Comparison, names: Names) -> str:
    """The name of a point, followed by that of its comparison."""
    both = [claim.name_of(point, names), comparison_name(comparison, names)]
    return ", ".join(filter(None, both))


def _run_counts(claim: Claim, comparison: Comparison, values: Sequence[Value], names: Names) -> str:
    """Text for the evidence: how many runs of each point did not reach the threshold, diverged, or
    ended at chance level, and to how many rounds means are restricted."""
    remarks = []
    for point, value in zip(comparison.points, values, strict=True):
        counts = [
            (value.censored, "do not reach it"),
            (value.diverged, "diverged"),
            (value.at_chance, "at chance level"),
        ]
        remarks += [
            f", {count} of {value.n} runs {what} ({claim.name_of(point, names)})"
            for count, what in counts
            if count and value.n > 1
        ]
    if any(value.censored and value.n > 1 for value in values):
        rounds = last_round(values) + 1
        remarks.append(f", means restricted to {rounds:.6g} rounds")
    return "".join(remarks)
