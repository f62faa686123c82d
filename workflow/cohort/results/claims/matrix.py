"""The cells that claims compare: a study's experiments, with the seeds of a cell as one point."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from cohort.core.errors import UserError, suggest
from cohort.results.series import label_text

Labels = dict[str, str]
Given = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """Cells that differ in their seed only; `called` are the labels that name the point.

    `metric` and `at` say what is compared; where empty, the claim's own apply. `seeds` is their
    number, and `rounds` how long they are (0: not said), at full scale.
    """

    experiment: str
    labels: Labels
    called: list[str]
    metric: str = ""
    at: int | str = ""
    seeds: int = 1
    rounds: int = 0

    @property
    def key(self) -> tuple[str, ...]:
        """What points of different comparisons share if they stand for the same cells."""
        return self.experiment, *self.labels.values()


@dataclass(frozen=True)
class Comparison:
    """Points to compare; the labels in `name` distinguish it from the claim's other comparisons."""

    points: list[Point]
    name: Labels = field(default_factory=dict)
    way: str = ""

    def at(self, label: str, values: Sequence[str]) -> Self:
        """A comparison of only the points with these values of a label, in this order. Raise
        UserError if there is no such point."""
        points = {point.labels[label]: point for point in self.points}
        if missing := [value for value in values if value not in points]:
            shared = set.intersection(*(set(point.labels.items()) for point in self.points))
            rest = ", ".join(f"{name} {value}" for name, value in sorted(shared) if name != label)
            raise UserError(
                f"{self.points[0].experiment} has no cell with {label} {missing[0]}"
                f"{f' and {rest}' if rest else ''}; say in given which are meant"
            )
        return replace(self, points=[points[value] for value in values])


class Matrix:
    """Finds the cells of a study's experiments at full scale that a claim compares, by their labels
    as text; it is made of each experiment's axes and cells."""

    def __init__(
        self, experiments: Mapping[str, tuple[Mapping[str, list[Any]], Iterable[Given]]]
    ) -> None:
        self._axes: dict[str, dict[str, list[str]]] = {}
        self._points: dict[str, list[Point]] = {}
        for experiment, (axes, cells) in experiments.items():
            names = [axis for axis in axes if axis != "seed"]
            by_labels: defaultdict[tuple[str, ...], list[Given]] = defaultdict(list)
            for cell in cells:
                by_labels[tuple(label_text(cell.get(axis)) for axis in names)].append(cell)
            self._axes[experiment] = {axis: list(map(label_text, axes[axis])) for axis in names}
            self._points[experiment] = [
                Point(
                    experiment,
                    dict(zip(names, labels, strict=True)),
                    called=[],
                    seeds=len(seeds),
                    rounds=seeds[-1].get("rounds", 0),
                )
                for labels, seeds in by_labels.items()
            ]

    def sweeps(self, experiment: str, given: Given, along: str) -> list[Comparison]:
        """The cells along the label `along` in the order of its axis: one comparison for each
        combination of the other labels.

        A label that varies together with `along`, such as rounds paired with J, is not held fixed.
        """
        points = self._select(experiment, given)
        self._check_axis(experiment, along, "along is")
        order = self._axes[experiment][along].index
        values = _count_distinct([along], points)
        apart = [
            label
            for label in self._axes[experiment]
            if _count_distinct([along, label], points) > values
        ]
        sweeps: defaultdict[tuple[str, ...], list[Point]] = defaultdict(list)
        for point in points:
            sweeps[_values(apart, point)].append(replace(point, called=[along]))
        names = _fewest_labels(apart, [sweep[0] for sweep in sweeps.values()])
        comparisons = []
        for sweep in sweeps.values():
            points = sorted(sweep, key=lambda point: order(point.labels[along]))
            comparisons.append(Comparison(points, {name: sweep[0].labels[name] for name in names}))
        return comparisons

    def points(self, experiment: str, given: Given) -> list[Point]:
        """One point per combination of values in `given`; UserError if they leave a choice."""
        seen: dict[tuple[str, ...], Point] = {}
        for point in self._select(experiment, given):
            first = seen.setdefault(_values(given, point), point)
            for label, value in point.labels.items():
                if value != first.labels[label]:
                    raise UserError(
                        f"given leaves {label} {first.labels[label]} and {value} of {experiment} "
                        "together, which differ in more than their seed; say which is meant "
                        f"(given: {{{label}: ...}})"
                    )
        return [replace(point, called=list(given)) for point in seen.values()]

    def all_points(self, experiment: str, given: Given) -> list[Point]:
        """All points with the values in `given`, named by the labels in which they differ."""
        points = self._select(experiment, given)
        names = _fewest_labels(self._axes[experiment], points)
        return [replace(point, called=names) for point in points]

    def check_values(
        self, experiment: str, label: str, values: Iterable[Any], where: str
    ) -> list[str]:
        """The values as text. Raise UserError, naming key `where`, if one is not on the axis."""
        self._check_axis(experiment, label, "given names" if where == "given" else "along is")
        axis, texts = self._axes[experiment][label], list(map(label_text, values))
        for value in texts:
            if value not in axis:
                raise UserError(
                    f"{where} names {label} {value}, which is not on the axis of {experiment}"
                    f"{suggest(value, axis)}"
                )
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
        if experiment not in self._axes:
            raise UserError(
                f"experiment is '{experiment}', which is not known{suggest(experiment, self._axes)}"
            )

    def _check_axis(self, experiment: str, label: str, where: str) -> None:
        self._check_experiment(experiment)
        axes = self._axes[experiment]
        if label not in axes:
            raise UserError(
                f"{where} '{label}', which is not an axis of {experiment}{suggest(label, axes)}"
            )


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
