"""The kinds of claims: about values, which is best, in which order they are, how far apart, how
early; about differences of two quantities or values of a label; and about two such differences.
Planning imports this module, so pandas is lazy."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product, repeat
from typing import Any, ClassVar, Literal

import numpy as np

from cohort.core.components import Catalog, parameter
from cohort.core.errors import UserError
from cohort.results import statistics
from cohort.results.claims import claim as base
from cohort.results.claims.claim import TIE, Matrix, Number, Point, PointComparison, above, relation
from cohort.results.names import BY_ROUND, METRICS, Names
from cohort.results.series import label_text, rounds_of

AT = "at"
PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": True}
PAIRS_HELP = "pairs of its values: the first one's metric minus the second's"
SETTINGS: dict[str, Any] = {"type": "object", "minProperties": 1}
CHAIN: dict[str, Any] = {"type": "array", "items": SETTINGS, "minItems": 2}
QUANTITY = {
    "type": "object",
    "properties": {
        "experiment": {"type": "string"},
        "given": {"type": "object"},
        "metric": {"type": "string", "enum": BY_ROUND},
        "at": base.AT_SCHEMA | {"description": base.AT_HELP},
    },
    "additionalProperties": False,
}
QUANTITIES: dict[str, Any] = {"items": QUANTITY, "minItems": 1}
QUANTITIES["help"] = "each with experiment, given, metric, at where they differ"
MIN_SETTINGS = 5  # of fewer not even all on one side are clear: of four, one in 16 are by chance


@dataclass(frozen=True, kw_only=True)
class Best(base.ClaimAlong):
    """The best value of `along` is one of `among`, for each combination of the other labels."""

    name: ClassVar[str] = "best"

    among: list[Any] = parameter(minItems=1, uniqueItems=True, help="its values, one of them best")

    def check(self) -> None:
        if not self.counts_rounds():
            statistics.check_better(self.metric, "use kind order, which states a direction")

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        sweeps = super().comparisons(matrix)
        among = set(self.checked(matrix, self.among, "among"))
        for sweep in sweeps:
            compared = [point.labels[self.along] for point in sweep.points]
            if not 0 < len(among.intersection(compared)) < len(compared):
                some = f"among must hold some of the values of {self.along} that are compared"
                raise UserError(f"{some}, and not all of them ({', '.join(compared)})")
        return sweeps

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each other value: one of `among` is better."""
        pairs = list(zip(comparison.points, values, strict=True))
        candidates = [self.sign() * value for point, value in pairs if self._is_among(point)]
        others = [self.sign() * value for point, value in pairs if not self._is_among(point)]
        return [list(map(above, candidates, repeat(other))) for other in others]

    def has_enough(self, points: Sequence[Point]) -> bool:
        return 0 < sum(map(self._is_among, points)) < len(points)

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        pairs = zip(comparison.points, values, strict=True)
        ranked = sorted(pairs, key=lambda pair: pair[1], reverse=self.sign() > 0)
        return "; ".join(self.value_with_label(point, value, names) for point, value in ranked)

    def _is_among(self, point: Point) -> bool:
        return point.labels[self.along] in map(label_text, self.among)


@dataclass(frozen=True, kw_only=True)
class Order(base.ClaimAlong):
    """The metric falls (or rises) along its values, in each combination of the other labels."""

    name: ClassVar[str] = "order"
    min_points = 2

    values: list[Any] = parameter(minItems=2, uniqueItems=True, help="its values, in order")
    way: Literal["falls", "rises"] = parameter(help="where the metric goes from value to value")

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        values = self.checked(matrix, self.values, "values")
        return [sweep.at(self.along, values) for sweep in self.sweeps(matrix)]

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each value but the first: it is below (or above) the one before it."""
        sign = 1 if self.way == "falls" else -1
        return [[above(sign * first, sign * second)] for first, second in pairwise(values)]

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        steps = (f" {relation(*pair)} {self.number(pair[1])}" for pair in pairwise(values))
        return self.number(values[0]) + "".join(steps)

    def opening(self, comparison: PointComparison, names: Names) -> str:
        return ", ".join(base.point_name(point, names) for point in comparison.points)


@dataclass(frozen=True, kw_only=True)
class Range(base.ClaimAlong):
    """The metric is above a number, below one, or both; or its values along a label lie at most
    `within`, or more than `beyond`, apart. This must hold for each combination of the other labels
    or, without `along`, in each setting."""

    name: ClassVar[str] = "range"
    min_points = 2

    along: str = parameter("", help="the label whose values are judged together")
    above: float | None = parameter(None, help="what it is above, in the unit as shown")
    below: float | None = parameter(None, help="what it is below")
    within: float | None = parameter(None, minimum=0, help="how far its values may lie apart")
    beyond: float | None = parameter(None, minimum=0, help="how far apart two of its values lie")
    every: Literal["runs"] | None = parameter(
        None, help="runs: each single run must bear it out, not the typical one"
    )

    def check(self) -> None:
        apart = [limit for limit in (self.within, self.beyond) if limit is not None]
        if self.above is None and self.below is None and not apart:
            limits = "above or below, or within or beyond (how far apart)"
            raise UserError(f"it needs the range that the sentence names: {limits}")
        if apart and not self.along:
            raise UserError("within and beyond need along, the label whose values lie apart")

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        if self.along:
            return super().comparisons(matrix)
        points = matrix.all_points(self.experiment, self.given or {})
        return [PointComparison([point]) for point in points]

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """Clauses that are all true if each value is strictly above and below the bounds, each two
        are within `within`, and some two are apart by more than `beyond`, if these are given."""
        clauses: list[list[Number]] = []
        pairs = list(permutations(values, 2))
        if self.above is not None:
            clauses += [[above(value, self.above)] for value in values]
        if self.below is not None:
            clauses += [[above(self.below, value)] for value in values]
        if self.within is not None:
            clauses += [[above(self.within, high - low, -TIE)] for high, low in pairs]
        if self.beyond is not None:
            clauses += [[above(high, low, self.beyond) for high, low in pairs]]
        return clauses

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        low, high = min(values), max(values)
        points = [comparison.points[values.index(end)] for end in (low, high)]
        first, last = map(self.value_with_label, points, (low, high), repeat(names))
        text = f"{self.number(high - low)} apart, {first} to {last}" if self.along else first
        for value, bound in ((low, self.above), (high, self.below)):
            text += "" if bound is None else f" {relation(value, bound)} {bound:g}"
        return text + (f", asked for more than {self.beyond:g}" if self.beyond is not None else "")


@dataclass(frozen=True, kw_only=True)
class Slower(base.ClaimAlong):
    """Other values of a label take `times` as many rounds to reach what the leader has in a range
    of rounds. They are compared in later ranges of the same length; one that never gets there is
    slower too. A range counts by its last round. With `at: max` the goal is the leader's best
    value, seed by seed, and the rounds compared are the first ones that reach it."""

    name: ClassVar[str] = "slower"

    leader: float | str = parameter(help="its value that sets the goal, in the rounds of `at`")
    others: list[Any] = parameter(
        minItems=1, uniqueItems=True, help="its values compared with that"
    )
    times: float = parameter(1.0, exclusiveMinimum=0, help="so many times as many rounds, at least")

    def check(self) -> None:
        statistics.check_better(self.metric)
        if self.buckets:
            raise UserError("buckets are for other kinds: this one compares ranges itself")
        if self.counts_rounds():
            if METRICS[self.metric].better == "low":
                why = f"low values of {self.metric} are better"
                raise UserError(f"at is 'max', which is not a goal: {why}")
        elif rounds_of(self.at) is None or str(self.at).isdigit():
            wanted = "a range of rounds such as 21-30, or max"
            raise UserError(f"at is '{self.at}', but must be {wanted}")

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """A comparison with each other value: the leader's point in the range of `at`, the other's
        in this and each later range; with `at: max` both points at the leader's best value."""
        leader, *others = self.checked(matrix, [self.leader, *self.others], "leader or others")
        comparisons = []
        for sweep, other in product(self.sweeps(matrix), others):
            if any(point.labels[self.along] == other for point in sweep.points):
                pair = sweep.at(self.along, [leader, other]).points
                name = sweep.name | {self.along: other}
                comparisons.append(PointComparison(self._in_rounds(*pair), name))
        return comparisons

    def _in_rounds(self, leader: Point, other: Point) -> list[Point]:
        if not self.counts_rounds():
            first, last = map(int, str(self.at).split("-"))
            length = last - first + 1
            begins = range(first, max(other.rounds, last) - length + 2, length)
            ats = [f"{begin}-{begin + length - 1}" for begin in begins]
            return [leader, *(replace(other, at=at) for at in ats)]
        for label, value in leader.labels.items():
            if label != self.along and value != other.labels[label]:
                compares = f"compares runs that differ in {self.along} only"
                both = f"{label} is {value} and {other.labels[label]}"
                raise UserError(f"at is 'max', which {compares}, but {both}")
        at = f"{base.BEST_OF}{self.along} {leader.labels[self.along]}"
        return [replace(leader, at=at), replace(other, at=at)]

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """A clause for each range that would be too early, in which the other is still behind. With
        `at: max` one: the other needs more rounds than `times` the leader's."""
        if self.counts_rounds():
            return [[above(values[1], self.times * values[0])]]
        goal, *later = (self.sign() * value for value in values)
        first, *ends = map(_last, comparison.points)
        return [
            [above(goal, value, TIE)]  # who is level has reached it
            for index, (end, value) in enumerate(zip(ends, later, strict=True))
            if index == 0 or end < self.times * first
        ]

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        if self.counts_rounds():
            last, reached = values
            goal = f"best in round {self.number(last)}"
        else:
            last, *ends = map(_last, comparison.points)
            leader, *_ = comparison.points
            goal = f"{self.value_with_label(leader, values[0], names)} by round {last:g}"
            behind = [self.sign() * (value - values[0]) for value in values[1:]]
            in_time = (end for end, lead in zip(ends, behind, strict=True) if lead >= 0)
            reached = next(in_time, float("inf"))
        if reached == float("inf"):
            return f"{goal}, never reached"
        return f"{goal}, reached by round {reached:.4g}, {reached / last:.2g} times as late"

    def counts_rounds(self) -> bool:
        """Whether the goal is the leader's best value, so that rounds are compared."""
        return self.at == "max"


def _last(point: Point) -> float:
    return float(str(point.at).partition("-")[2])


@dataclass(frozen=True, kw_only=True)
class Compare(base.Claim):
    """The metric of `given` is numerically above or below that of other quantities."""

    name: ClassVar[str] = "compare"

    above: list[dict[str, Any]] | None = parameter(None, **QUANTITIES)
    below: list[dict[str, Any]] | None = parameter(None, **QUANTITIES)
    margin: float = parameter(0.0, help=base.MARGIN_HELP)

    def entries(self) -> list[tuple[str, dict[str, Any]]]:
        """Pairs of `above` or `below` and a quantity that is named there."""
        ways = {"above": self.above, "below": self.below}
        return [(way, entry) for way, entries in ways.items() for entry in entries or []]

    def check(self) -> None:
        if not self.entries():
            raise UserError("it needs above or below, a list of what it is compared with")
        for _, entry in self.entries():
            metric, at = entry.get("metric", self.metric), entry.get(AT, self.at)
            if _unit(metric, at) != _unit(self.metric, self.at):
                ours, other = f"{self.metric} (at {self.at})", f"{metric} (at {at})"
                raise UserError(f"{ours} cannot be compared with {other}, which has another unit")

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """A comparison of each point of `given` with each of every entry of `above` and `below`."""
        subjects = matrix.points(self.experiment, self.given or {})
        others = []
        for way, entry in self.entries():
            points = matrix.points(entry.get("experiment", self.experiment), entry.get("given", {}))
            metric, at = entry.get("metric", ""), entry.get(AT, "")
            others += [(way, replace(point, metric=metric, at=at)) for point in points]
        pairs = product(subjects, others)
        return [PointComparison([subject, point], way=way) for subject, (way, point) in pairs]

    def name_of(self, point: Point, names: Names) -> str:
        return base.point_name(point, names) or point.experiment.replace("_", " ")

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first value is above (or below) the second by more than the margin."""
        more, less = values if comparison.way == "above" else reversed(values)
        return [[above(more, less, self.margin)]]

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        pairs = zip(comparison.points, values, strict=True)
        first, second = (self.value_with_label(point, value, names) for point, value in pairs)
        return f"{first} {relation(*values)} {second}{_margin_text(self.margin)}"


def _unit(metric: str, at: int | str) -> tuple[str, float]:
    return ("", 1.0) if base.counts_rounds(at) else (METRICS[metric].unit, METRICS[metric].scale)


@dataclass(frozen=True, kw_only=True)
class Gain(base.ClaimAlong):
    """The metric at the first of each pair of values exceeds that at the second by a margin, for
    each combination of the other labels."""

    name: ClassVar[str] = "gain"

    pairs: list[list[Any]] = parameter(items=PAIR, minItems=1, help=PAIRS_HELP)
    margin: float = parameter(0.0, help=base.MARGIN_HELP)

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        pairs = [self.checked(matrix, pair, "pairs") for pair in self.pairs]
        return [sweep.at(self.along, pair) for sweep in self.sweeps(matrix) for pair in pairs]

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        return [[above(values[0], values[1], self.margin)]]

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        text = _differences_text(self, values, [self.pair_name(comparison, names)])
        return text + _margin_text(self.margin)

    def pair_name(self, comparison: PointComparison, names: Names) -> str:
        """What is subtracted from what, as text."""
        return " minus ".join(self.value_name(point, names) for point in comparison.points[:2])


class Average(Gain):
    """On average over all combinations of the other labels, the first of each pair of values
    exceeds the second by a margin. Wilcoxon's signed-rank test counts these settings, each by its
    mean difference over seeds: a few may go the other way."""

    name: ClassVar[str] = "average"
    is_over_settings: ClassVar[bool] = True

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """One comparison per pair: the points of its two values in each setting."""
        comparisons = []
        for pair in [self.checked(matrix, pair, "pairs") for pair in self.pairs]:
            points: list[Point] = []
            for sweep in self.sweeps(matrix):
                if set(pair) <= {point.labels[self.along] for point in sweep.points}:
                    points += [
                        replace(point, naming_labels=[*sweep.name, self.along])
                        for point in sweep.at(self.along, pair).points
                    ]
            if (settings := len(points) // 2) < MIN_SETTINGS:
                why = f"pairs names {' and '.join(pair)}, which {settings} settings have together"
                hint = "so judge them one by one (kind gain)"
                raise UserError(f"{why}; an average takes at least {MIN_SETTINGS}, {hint}")
            comparisons.append(PointComparison(points))
        return comparisons

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause with one array: each setting's mean difference over seeds, less the margin."""
        pairs = zip(values[::2], values[1::2], strict=True)
        return [[np.array([np.mean(above(first, second, self.margin)) for first, second in pairs])]]

    def contrast(self, difference: Number) -> statistics.SignedRanks:
        return statistics.SignedRanks.of(np.round(difference, 9))

    def side(self, comparison: PointComparison, values: Sequence[float]) -> int:
        """Whether the test of single values is for the claim (1), against it (-1), or neither."""
        ranks = self.contrast(self.clauses(comparison, values)[0][0])
        is_above, is_below = (side.p_above() <= statistics.ALPHA for side in (ranks, -ranks))
        return is_above - is_below

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        ranks = self.contrast(self.clauses(comparison, values)[0][0])
        mean = f"{self.number(ranks.mean + self.margin)} on average{_margin_text(self.margin)}"
        settings = f"{ranks.above} of {ranks.n} settings (p = {ranks.p_above():.2g})"
        return f"{self.pair_name(comparison, names)} {mean}, larger in {settings}"


@dataclass(frozen=True, kw_only=True)
class WiderGap(base.ClaimAlong):
    """The difference between values of `along` is larger with some labels than with others, or in
    some rounds than in others (`at` among the labels)."""

    name: ClassVar[str] = "gap"

    between: list[Any] = parameter(
        minItems=2, uniqueItems=True, help="its values: the first minus each of the others"
    )
    grows: list[list[dict[str, Any]]] = parameter(
        items=CHAIN, minItems=1, help="lists of labels, from one to the next of which it grows"
    )

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """Comparisons of four points: the pair of values with larger labels, then the pair with
        smaller ones, for settings that agree in all other labels."""
        first, *others = self.checked(matrix, self.between, "between")
        steps = [step for chain in self.grows for step in pairwise(chain)]
        comparisons = []
        for other, (than, larger) in product(others, steps):
            label = {self.along: other} if len(others) > 1 else {}
            sides = [
                self._pairs(matrix, [first, other], labels, {*larger, *than})
                for labels in (larger, than)
            ]
            step = [
                PointComparison([*more.points, *less.points], label | more.name)
                for more, less in product(*sides)
                if more.name == less.name
            ]
            if not step:
                why = "two settings have no other label in common, so that nothing can be compared"
                raise UserError(f"{why}; add the labels that both share to `given`")
            comparisons += step
        return comparisons

    def _pairs(
        self, matrix: Matrix, values: list[str], settings: dict[str, Any], step: set[str]
    ) -> list[PointComparison]:
        """The pair of values in each of the settings, named by its labels outside of the step."""
        labels = {label: value for label, value in settings.items() if label != AT}
        pairs = []
        for sweep in matrix.sweeps(self.experiment, (self.given or {}) | labels, self.along):
            points = [
                replace(point, naming_labels=list(labels), at=settings.get(AT, ""))
                for point in sweep.at(self.along, values).points
            ]
            name = {label: value for label, value in sweep.name.items() if label not in step}
            pairs.append(PointComparison(points, name))
        return pairs

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first two values differ by more than the last two."""
        return [[above(above(values[0], values[1]), above(values[2], values[3]))]]

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        labels = [self.point_label(point, names) for point in comparison.points[::2]]
        return _differences_text(self, values, labels)

    def opening(self, comparison: PointComparison, names: Names) -> str:
        texts = map(label_text, self.between)
        first, *others = (base.short_name(self.along, text, names) for text in texts)
        return f"{first} minus {' or '.join(others)}"


def _margin_text(margin: float) -> str:
    """The end of a comparison's evidence: the margin that it must exceed, or its tolerance."""
    if margin > 0:
        return f", asked for a difference above {margin:g}"
    return f", with a tolerance of {-margin:g}" if margin else ""


def _differences_text(claim: base.Claim, values: Sequence[float], labels: Sequence[str]) -> str:
    """The differences of each two values, with the values and the label of the difference, as text;
    two differences with the sign between them."""
    differences, texts = [], []
    for first, second, label in zip(values[::2], values[1::2], labels, strict=True):
        differences.append(float(above(first, second)))
        left, right, difference = map(claim.number, (first, second, differences[-1]))
        texts.append(f"{left} - {right} = {difference} ({label})")
    return f" {relation(differences[0], differences[-1])} ".join(texts)


KINDS = (Average, Best, Compare, Gain, WiderGap, Order, Range, Slower)
CLAIMS = Catalog(__name__, base.Claim, KINDS)
