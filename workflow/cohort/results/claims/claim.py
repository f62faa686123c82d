"""The base of every kind of claim, a sentence of a paper as comparisons of numbers, and the cells
that claims compare, with all seeds of a cell as one point."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np

from cohort.core.components import Component, parameter
from cohort.core.errors import UserError, check_allowed
from cohort.results import series, statistics
from cohort.results.names import BY_ROUND, METRICS, Names, word

Labels = dict[str, str]
Given = Mapping[str, Any]
Number = float | np.ndarray  # one value, or one per seed
FIRST = "first "
BEST_OF = f"{FIRST}best of "  # followed by a label and its value
TIE = 1e-9  # below what the rounding to nine decimals can tell apart
AT_HELP = (
    f"{series.SIMPLE}, a range such as 21-30, or 'first 0.2' (the round that first reaches it)"
)
AT_SCHEMA: dict[str, Any] = {
    "type": ["integer", "string"],
    "minimum": 1,
    "pattern": rf"^({'|'.join(series.WORDS)}|{series.RANGE}|{FIRST}[0-9]*\.?[0-9]+)$",
}
MARGIN_HELP = "by more than this, in the unit as shown; a negative one is a tolerance"


@dataclass(frozen=True)
class Point:
    """Cells that differ in their seed only; `naming_labels` name the point. Where `metric` and `at`
    are empty, the claim's own apply. `seeds` is their number, and `rounds` how long they are (0:
    not said), at full scale."""

    experiment: str
    labels: Labels
    naming_labels: list[str]
    metric: str = ""
    at: int | str = ""
    seeds: int = 1
    rounds: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What points of different comparisons share if they stand for the same cells."""
        return self.experiment, *self.labels.values()


@dataclass(frozen=True)
class PointComparison:
    """Points to compare; the labels in `name` distinguish it from the claim's other comparisons."""

    points: list[Point]
    name: Labels = field(default_factory=dict)
    way: str = ""

    def at(self, label: str, values: Sequence[str]) -> Self:
        """The comparison of these values of a label, in order; UserError if one has no point."""
        points = {point.labels[label]: point for point in self.points}
        if missing := [value for value in values if value not in points]:
            shared = set.intersection(*(set(point.labels.items()) for point in self.points))
            rest = ", ".join(f"{name} {value}" for name, value in sorted(shared) if name != label)
            cell = " and ".join(filter(None, [f"{label} {missing[0]}", rest]))
            lacks = f"{self.points[0].experiment} has no cell with {cell}"
            raise UserError(f"{lacks}; narrow `given` down to one")
        return replace(self, points=[points[value] for value in values])


class Matrix:
    """Finds the cells that a claim compares by their labels as text; it is made of each
    experiment's axes and cells at full scale."""

    def __init__(
        self, experiments: Mapping[str, tuple[Mapping[str, list[Any]], Iterable[Given]]]
    ) -> None:
        self._axes: dict[str, dict[str, list[str]]] = {}
        self._points: dict[str, list[Point]] = {}
        for experiment, (axes, cells) in experiments.items():
            texts = {axis: list(map(series.label_text, axes[axis])) for axis in axes}
            texts.pop("seed", None)
            seeds: defaultdict[tuple[str, ...], list[Given]] = defaultdict(list)
            for cell in cells:
                seeds[tuple(series.label_text(cell.get(axis)) for axis in texts)].append(cell)
            self._axes[experiment], self._points[experiment] = texts, []
            for values, runs in seeds.items():
                labels, rounds = dict(zip(texts, values, strict=True)), runs[-1].get("rounds", 0)
                count = len({run.get("seed") for run in runs})
                point = Point(experiment, labels, [], seeds=count, rounds=rounds)
                self._points[experiment].append(point)

    def sweeps(self, experiment: str, given: Given, along: str) -> list[PointComparison]:
        """The cells along a label in the order of its axis: one comparison for each combination of
        the other labels but those that vary together with it, such as rounds paired with J."""
        order = self._axis(experiment, along, "along is").index
        points = self._select(experiment, given)
        points = [point for point in points if point.labels[along] != series.NO_VALUE]
        count = _count_distinct([along], points)
        axes = self._axes[experiment]
        apart = [label for label in axes if _count_distinct([along, label], points) > count]
        sweeps: defaultdict[tuple[str, ...], list[Point]] = defaultdict(list)
        for point in points:
            sweeps[_values(apart, point)].append(replace(point, naming_labels=[along]))
        names = _fewest_labels(apart, [sweep[0] for sweep in sweeps.values()])
        comparisons = []
        for sweep in sweeps.values():
            ordered = sorted(sweep, key=lambda point: order(point.labels[along]))
            labels = {name: sweep[0].labels[name] for name in names}
            comparisons.append(PointComparison(ordered, labels))
        return comparisons

    def points(self, experiment: str, given: Given) -> list[Point]:
        """One point per combination of values in `given`; UserError if they leave a choice."""
        seen: dict[tuple[str, ...], Point] = {}
        for point in self._select(experiment, given):
            first = seen.setdefault(_values(given, point), point)
            for label, value in point.labels.items():
                if value != first.labels[label]:
                    both = f"{label} {first.labels[label]} and {value} of {experiment} together"
                    hint = f"say which is meant (given: {{{label}: ...}})"
                    why = "which differ in more than their seed"
                    raise UserError(f"given leaves {both}, {why}; {hint}")
        return [replace(point, naming_labels=list(given)) for point in seen.values()]

    def all_points(self, experiment: str, given: Given) -> list[Point]:
        """All points with the values in `given`, named by the labels in which they differ."""
        points = self._select(experiment, given)
        names = _fewest_labels(self._axes[experiment], points)
        return [replace(point, naming_labels=names) for point in points]

    def check_values(
        self, experiment: str, label: str, values: Iterable[Any], where: str
    ) -> list[str]:
        """The values as text. Raise UserError, naming key `where`, if one is not on the axis."""
        axis = self._axis(experiment, label, "given names" if where == "given" else "along is")
        texts = list(map(series.label_text, values))
        for value in texts:
            problem = f"{where} names {label} {value}, which is not on the axis of {experiment}"
            check_allowed(value, axis, problem)
        return texts

    def _select(self, experiment: str, given: Given) -> list[Point]:
        self._check_experiment(experiment)
        points = self._points[experiment]
        for label, value in given.items():
            values = value if isinstance(value, list) else [value]
            texts = self.check_values(experiment, label, values, "given")
            points = [point for point in points if point.labels[label] in texts]
        if not points:
            labels = ", ".join(f"{label} {value}" for label, value in given.items())
            raise UserError(f"{experiment} has no cell with {labels}")
        return points

    def _check_experiment(self, experiment: str) -> None:
        check_allowed(experiment, self._axes, f"experiment is '{experiment}', which is not known")

    def _axis(self, experiment: str, label: str, where: str) -> list[str]:
        self._check_experiment(experiment)
        axes = self._axes[experiment]
        check_allowed(label, axes, f"{where} '{label}', which is not an axis of {experiment}")
        return axes[label]


def _fewest_labels(labels: Iterable[str], points: list[Point]) -> list[str]:
    """The first few of the labels that distinguish the points as well as all of them."""
    fewest: list[str] = []
    for label in labels:
        if _count_distinct([*fewest, label], points) > _count_distinct(fewest, points):
            fewest.append(label)
    return fewest


def _count_distinct(labels: Iterable[str], points: list[Point]) -> int:
    """Count the combinations of values that these labels have in the points."""
    return len({_values(labels, point) for point in points})


def _values(labels: Iterable[str], point: Point) -> tuple[str, ...]:
    return tuple(point.labels[label] for label in labels)


@dataclass(frozen=True, kw_only=True)
class Claim(Component):
    """Base of every kind of claim. It holds if all its comparisons hold."""

    is_over_settings: ClassVar[bool] = False  # which a test then counts in place of seeds
    min_points: ClassVar[int] = 0  # points with a value that are enough for a comparison; 0: all

    says: str = parameter(help="the sentence of the paper, in short")
    where: str = parameter("this study", help="where the paper says it")
    quote: str = parameter("", help="the sentence word for word; none if it is the study's own")
    against: str = parameter("", help="the paper's own numbers that contradict the sentence")
    reading: str = parameter("", help="what to make of these numbers")
    experiment: str = parameter(help="the experiment whose cells it is about")
    metric: str = parameter(enum=BY_ROUND, help="what is compared")
    at: int | str = parameter("last", help=AT_HELP, **AT_SCHEMA)
    buckets: int | None = parameter(
        None, minimum=1, help="judge each part of so many rounds of `at`, such as 1-100, on its own"
    )
    given: dict[str, Any] | None = parameter(None, help="labels with the values that count")
    paper: str = parameter("", help="the items of the paper whose values are judged as well")

    def check(self) -> None:
        """Raise UserError when the fields contradict each other."""

    def planned_comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """The claim's `comparisons` of planned cells, each point with its metric and `at`."""
        planned = []
        for comparison, at in product(self.comparisons(matrix), self._ats()):
            points = [
                replace(point, metric=point.metric or self.metric, at=point.at or at)
                for point in comparison.points
            ]
            name = comparison.name | ({"rounds": str(at)} if self.buckets else {})
            planned.append(replace(comparison, points=points, name=name))
        if not planned:
            raise UserError("no two of its cells can be compared; loosen `given`")
        return planned

    def _ats(self) -> list[int | str]:
        """The rounds at which the claim is judged: its `at`, or each bucket of that range."""
        if not self.buckets:
            return [self.at]
        limits = None if str(self.at).isdigit() else series.rounds_of(self.at)
        if limits is None or (limits[1] - limits[0] + 1) % self.buckets:
            wanted = f"a range of rounds that buckets of {self.buckets} fill, such as 1-100"
            raise UserError(f"at is '{self.at}', but must be {wanted}")
        begins = range(limits[0], limits[1] + 1, self.buckets)
        return [f"{begin}-{begin + self.buckets - 1}" for begin in begins]

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """The comparisons, their points without metric and `at`; UserError for missing cells."""
        raise NotImplementedError

    def clauses(self, comparison: PointComparison, values: Sequence[Number]) -> list[list[Number]]:
        """The clauses of a comparison: lists of differences between the values of its points, in
        the unit as shown. It holds if in every clause at least one difference is above 0. Values
        are single numbers, or arrays with an entry for each seed."""
        raise NotImplementedError

    def side(self, comparison: PointComparison, values: Sequence[float]) -> int:
        """Whether a comparison of single values holds (1), is an exact tie (0), or fails (-1)."""
        worst = min(map(max, self.clauses(comparison, values)), default=1)
        return 1 if worst > 0 else 0 if worst == 0 else -1

    def contrast(self, difference: Number) -> statistics.Sample:
        """The sample for testing a difference, an array with an entry for each seed, against 0."""
        return statistics.Sample.of(difference)

    def has_enough(self, points: Sequence[Point]) -> bool:
        """Whether a comparison can be judged on these points only, if the others have no value."""
        return 0 < self.min_points <= len(points)

    def opening(self, comparison: PointComparison, names: Names) -> str:
        """The text that opens the evidence, before all comparisons."""
        return ""

    def evidence(self, comparison: PointComparison, values: Sequence[float], names: Names) -> str:
        """The numbers of a comparison as text that shows why it holds or not."""
        raise NotImplementedError

    def number(self, value: float) -> str:
        """A value as text; a threshold that is not reached is `never`."""
        if not abs(value) < float("inf"):
            return "never" if value == float("inf") else series.NO_VALUE
        digits = METRICS[self.metric].digits
        if self.counts_rounds() or not digits:
            return f"{round(value, 1) + 0.0:.6g}"  # 0 for -0.0
        return f"{value:.{digits}f}"

    def name_of(self, point: Point, names: Names) -> str:
        """A point's name within its comparison: the labels that distinguish it, or its strategy."""
        return point_name(point, names) or names.value("strategy", point.labels["strategy"])

    def value_with_label(self, point: Point, value: float, names: Names) -> str:
        """A value as text, followed by the label of its point in parentheses."""
        return f"{self.number(value)} ({self.point_label(point, names)})"

    def point_label(self, point: Point, names: Names) -> str:
        """The name of a point, with its metric and its rounds where they are not the claim's."""
        metric = point.metric.replace("_", " ") if point.metric != self.metric else ""
        at = "" if self.buckets or str(point.at) == str(self.at) else str(point.at)
        parts = filter(None, [point_name(point, names), metric, at])
        return ", ".join(parts) or self.name_of(point, names)

    def sign(self) -> int:
        """The sign of a difference between two compared values of which the first is better."""
        return -1 if self.counts_rounds() or METRICS[self.metric].better == "low" else 1

    def counts_rounds(self) -> bool:
        """Whether the claim compares rounds that reach a threshold, not values of the metric."""
        return counts_rounds(self.at)


@dataclass(frozen=True, kw_only=True)
class ClaimAlong(Claim):
    """Base of the kinds that compare the values of one label."""

    along: str = parameter(help="the label")

    def sweeps(self, matrix: Matrix) -> list[PointComparison]:
        """The cells along the label, a comparison for each combination of the other labels."""
        return matrix.sweeps(self.experiment, self.given or {}, self.along)

    def comparisons(self, matrix: Matrix) -> list[PointComparison]:
        """One comparison per combination of the other labels, each of at least two points."""
        sweeps = self.sweeps(matrix)
        for sweep in sweeps:
            if len(sweep.points) < 2:
                alone = f"{self.along} {sweep.points[0].labels[self.along]} of {self.experiment}"
                raise UserError(f"{alone} has no second value to compare with; loosen `given`")
        return sweeps

    def checked(self, matrix: Matrix, values: Sequence[Any], where: str) -> list[str]:
        """Values of the label as text. Raise UserError, naming key `where`, for an unknown one."""
        return matrix.check_values(self.experiment, self.along, values, where)

    def name_of(self, point: Point, names: Names) -> str:
        is_named = not self.along or self.along in point.naming_labels
        value = "" if is_named else self.value_name(point, names)
        parts = filter(None, [value, point_name(point, names)])
        return ", ".join(parts) or super().name_of(point, names)

    def value_name(self, point: Point, names: Names) -> str:
        """The short name of a point's value of the label."""
        return short_name(self.along, point.labels[self.along], names)


def above(first: Number, second: Number, margin: float = 0.0) -> Number:
    """By how much the first value exceeds the second beyond the margin, seed by seed for arrays. A
    margin of -TIE lets a tie pass."""
    apart = np.where(first == second, 0.0, first - second)  # never is as late as never
    return np.round(apart - margin, 9)


def counts_rounds(at: int | str) -> bool:
    """Whether `at` asks for the round that reaches a threshold."""
    return str(at).startswith(FIRST)


def point_name(point: Point, names: Names) -> str:
    """A point's label values that distinguish it, as text; empty if there is none."""
    return ", ".join(short_name(label, point.labels[label], names) for label in point.naming_labels)


def short_name(label: str, value: str, names: Names) -> str:
    """The short name of a label value: its title if it has one, else `J4e` or `beta 0.3`."""
    if names.has_title(label, value):
        return names.value(label, value)
    return f"{word(label)} {value}" if re.fullmatch(r"[-+.e0-9]+", value) else value


def relation(first: float, second: float) -> str:
    """The sign (<, = or >) between two values."""
    return "=" if first == second else ">" if first > second else "<"
