"""The cells that claims compare: a study's experiments, with the seeds of a cell as one point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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

    def by(self, label: str) -> dict[str, Point]:
        """The points by their value of a label."""
        return {point.labels[label]: point for point in self.points}

    def at(self, label: str, values: Sequence[str]) -> Comparison:
        """A comparison of only the points with these values of a label, in this order. Raise
        UserError if there is no such point."""
        points = self.by(label)
        if missing := [value for value in values if value not in points]:
            labels = (set(point.labels.items()) for point in self.points)
            shared = sorted(set.intersection(*labels))
            rest = ", ".join(f"{name} {value}" for name, value in shared if name != label)
            raise UserError(
                f"{self.points[0].experiment} has no cell with {label} {missing[0]}"
                + (f" and {rest}" if rest else "")
                + "; say in given which are meant"
            )
        return replace(self, points=[points[value] for value in values])


class Matrix:
    """Finds the cells of a study's experiments at full scale that a claim compares, by their labels
    as text."""

    def __init__(self) -> None:
        self._axes: dict[str, dict[str, list[str]]] = {}
        self._cells: dict[str, list[Labels]] = {}
        self._rounds: dict[tuple[str, ...], int] = {}
        self._seeds: Counter[tuple[str, ...]] = Counter()

    def add(
        self, experiment: str, axes: Mapping[str, list[Any]], cells: Iterable[Mapping[str, Any]]
    ) -> None:
        """Add an experiment with its axes and cells."""
        names = [axis for axis in axes if axis != "seed"]
        self._axes[experiment] = {axis: list(map(label_text, axes[axis])) for axis in names}
        points: dict[tuple[str, ...], Labels] = {}
        for cell in cells:
            point = Point(experiment, {axis: label_text(cell.get(axis)) for axis in names}, [])
            points[point.key] = point.labels
            self._rounds[point.key] = cell.get("rounds", 0)
            self._seeds[point.key] += 1
        self._cells[experiment] = list(points.values())

    def rounds(self, point: Point) -> int:
        """The number of rounds of a point's cells."""
        return self._rounds[point.key]

    def seeds(self, point: Point) -> int:
        """The number of a point's cells, which differ in their seed only."""
        return self._seeds[point.key]

    def sweeps(self, experiment: str, given: Given, along: str) -> list[Comparison]:
        """The cells along the label `along` in the order of its axis: one comparison for each
        combination of the other labels.

        A label that varies together with `along`, such as rounds paired with J, is not held fixed.
        """
        cells = self._select(experiment, given)
        self._check_axis(experiment, along, "along is")
        apart = [
            label for label in self._varying(experiment, cells) if not _follows(label, along, cells)
        ]
        sweeps: dict[tuple[str, ...], list[Labels]] = {}
        for cell in cells:
            sweeps.setdefault(tuple(cell[label] for label in apart), []).append(cell)
        names = _fewest_labels(apart, [cells[0] for cells in sweeps.values()])
        order = self._axes[experiment][along]
        comparisons = []
        for sweep in sweeps.values():
            ordered = sorted(sweep, key=lambda cell: order.index(cell[along]))
            points = [Point(experiment, cell, [along]) for cell in ordered]
            comparisons.append(Comparison(points, {label: sweep[0][label] for label in names}))
        return comparisons

    def points(self, experiment: str, given: Given) -> list[Point]:
        """One point per combination of values in `given`; UserError if they leave a choice."""
        cells = self._select(experiment, given)
        seen: dict[tuple[str, ...], Labels] = {}
        for cell in cells:
            first = seen.setdefault(tuple(cell[label] for label in given), cell)
            for label in cell:
                if cell[label] != first[label]:
                    raise UserError(
                        f"given leaves {label} {first[label]} and {cell[label]} of {experiment} "
                        "together, which differ in more than their seed; say which is meant "
                        f"(given: {{{label}: ...}})"
                    )
        return [Point(experiment, cell, list(given)) for cell in seen.values()]

    def all_points(self, experiment: str, given: Given) -> list[Point]:
        """All points with the values in `given`, named by the labels in which they differ."""
        cells = self._select(experiment, given)
        names = _fewest_labels(self._varying(experiment, cells), cells)
        return [Point(experiment, cell, names) for cell in cells]

    def check_values(
        self, experiment: str, label: str, values: Iterable[Any], where: str
    ) -> list[str]:
        """The values as text. Raise UserError, naming key `where`, if one is not on the axis."""
        axis = self._axes[experiment].get(label, [])
        texts = [label_text(value) for value in values]
        for value in texts:
            if value not in axis:
                raise UserError(
                    f"{where} names {label} {value}, which is not on the axis of {experiment}"
                    f"{suggest(value, axis)}"
                )
        return texts

    def _select(self, experiment: str, given: Given) -> list[Labels]:
        if experiment not in self._cells:
            raise UserError(
                f"experiment is '{experiment}', which is not known"
                f"{suggest(experiment, self._cells)}"
            )
        cells = self._cells[experiment]
        for label, value in given.items():
            self._check_axis(experiment, label, "given names")
            texts = self.check_values(experiment, label, as_list(value), "given")
            cells = [cell for cell in cells if cell[label] in texts]
        if not cells:
            labels = ", ".join(f"{label} {value}" for label, value in given.items())
            raise UserError(f"{experiment} has no cell with {labels}")
        return cells

    def _check_axis(self, experiment: str, label: str, where: str) -> None:
        if label not in self._axes[experiment]:
            raise UserError(
                f"{where} '{label}', which is not an axis of {experiment}"
                f"{suggest(label, self._axes[experiment])}"
            )

    def _varying(self, experiment: str, cells: list[Labels]) -> list[str]:
        return [label for label in self._axes[experiment] if _count_distinct([label], cells) > 1]


def as_list(value: Any) -> list[Any]:
    """One value or a list of values as a list."""
    return value if isinstance(value, list) else [value]


def _follows(label: str, along: str, cells: list[Labels]) -> bool:
    """Whether `label` has one value for each value of `along`, as rounds paired with J have."""
    return _count_distinct([along, label], cells) == _count_distinct([along], cells)


def _fewest_labels(labels: list[str], cells: list[Labels]) -> list[str]:
    """The first few of the labels that distinguish the cells as well as all of them."""
    fewest: list[str] = []
    for label in labels:
        if _count_distinct([*fewest, label], cells) > _count_distinct(fewest, cells):
            fewest.append(label)
    return fewest


def _count_distinct(labels: list[str], cells: list[Labels]) -> int:
    """Count the combinations of values that these labels have in the cells."""
    values = (map(cell.__getitem__, labels) for cell in cells)
    return len(set(map(tuple, values)))
