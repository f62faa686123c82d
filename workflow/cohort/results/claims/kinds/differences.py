"""Claims about differences: of two quantities or values of a label, and of two such differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import (
    AT_HELP,
    AT_SCHEMA,
    MARGIN_HELP,
    Claim,
    ClaimAlong,
    Number,
    above,
    counts_rounds,
    differences_text,
    margin_text,
    relation,
    short_name,
)
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.intervals import ALPHA, SignedRanks
from cohort.results.names import BY_ROUND, METRICS, Names
from cohort.results.series import label_text

AT = "at"
PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "uniqueItems": True}
PAIRS_HELP = "pairs of its values: the first one's metric minus the second's"
LABELS = {"type": "object", "minProperties": 1}
QUANTITY = {
    "type": "object",
    "properties": {
        "experiment": {"type": "string"},
        "given": {"type": "object"},
        "metric": {"type": "string", "enum": BY_ROUND},
        "at": AT_SCHEMA | {"description": AT_HELP},
    },
    "additionalProperties": False,
}
FEWEST_SETTINGS = 5  # of fewer not even all on one side are clear: of four, one in 16 are by chance


@dataclass(frozen=True, kw_only=True)
class Compare(Claim):
    """The metric of `given` is numerically above or below that of other quantities."""

    name: ClassVar[str] = "compare"

    above: list[dict[str, Any]] | None = parameter(
        None,
        items=QUANTITY,
        minItems=1,
        help="each with experiment, given, metric, at where they differ",
    )
    below: list[dict[str, Any]] | None = parameter(
        None, items=QUANTITY, minItems=1, help="the same"
    )
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def entries(self) -> list[tuple[str, dict[str, Any]]]:
        """Pairs of `above` or `below` and a quantity that is named there."""
        ways = {"above": self.above, "below": self.below}
        return [(way, entry) for way, entries in ways.items() for entry in entries or []]

    def check(self) -> None:
        """Raise UserError if there is nothing to compare with, or in another unit."""
        if not self.entries():
            raise UserError("it needs above or below, a list of what it is compared with")
        for _, entry in self.entries():
            metric, at = entry.get("metric", self.metric), entry.get("at", self.at)
            if _unit(metric, at) != _unit(self.metric, self.at):
                raise UserError(
                    f"{self.metric} (at {self.at}) cannot be compared with {metric} (at {at}), "
                    "which has another unit"
                )

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison of each point of `given` with each of every entry of `above` and `below`."""
        subjects = matrix.points(self.experiment, self.given or {})
        others = []
        for way, entry in self.entries():
            points = matrix.points(entry.get("experiment", self.experiment), entry.get("given", {}))
            metric, at = entry.get("metric", ""), entry.get(AT, "")
            others += [(way, replace(point, metric=metric, at=at)) for point in points]
        return [
            Comparison([subject, point], way=way) for subject in subjects for way, point in others
        ]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first value is above (or below) the second by more than the margin."""
        more, less = values if comparison.way == "above" else reversed(values)
        return [[above(more, less, self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Both values with the sign between them, and the margin, as text."""
        pairs = zip(comparison.points, values, strict=True)
        first, second = (self.placed(point, value, names) for point, value in pairs)
        return f"{first} {relation(*values)} {second}{margin_text(self.margin)}"


def _unit(metric: str, at: int | str) -> tuple[str, float]:
    return ("rounds", 1.0) if counts_rounds(at) else (METRICS[metric].unit, METRICS[metric].scale)


@dataclass(frozen=True, kw_only=True)
class Gain(ClaimAlong):
    """The metric at the first of each pair of values exceeds that at the second by a margin.

    The claim is about each combination of the other labels.
    """

    name: ClassVar[str] = "gain"

    pairs: list[list[Any]] = parameter(items=PAIR, minItems=1, help=PAIRS_HELP)
    margin: float = parameter(0.0, help=MARGIN_HELP)

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """A comparison of two points for each pair."""
        pairs = [self.checked(matrix, pair, "pairs") for pair in self.pairs]
        return [sweep.at(self.along, pair) for sweep in self.sweeps(matrix) for pair in pairs]

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first value exceeds the second by more than the margin."""
        return [[above(values[0], values[1], self.margin)]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The difference with the values that it comes from, as text."""
        pair = " minus ".join(self.value_name(point, names) for point in comparison.points)
        return differences_text(self, values, [pair]) + margin_text(self.margin)


@dataclass(frozen=True, kw_only=True)
class Average(Gain):
    """On average over all combinations of the other labels, the first of each pair of values
    exceeds the second by a margin.

    The combinations are settings, and these are what Wilcoxon's signed-rank test counts, each by
    its mean difference over seeds: a few settings may go the other way.
    """

    name: ClassVar[str] = "average"
    is_over_settings: ClassVar[bool] = True

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """One comparison per pair: the points of its two values in each setting."""
        sweeps, comparisons = self.sweeps(matrix), []
        for pair in [self.checked(matrix, pair, "pairs") for pair in self.pairs]:
            both = [sweep for sweep in sweeps if set(pair) <= set(sweep.by(self.along))]
            if len(both) < FEWEST_SETTINGS:
                raise UserError(
                    f"pairs names {' and '.join(pair)}, which {len(both)} settings have together; "
                    f"an average takes at least {FEWEST_SETTINGS}, so judge them one by one (kind "
                    "gain)"
                )
            points = [
                replace(point, called=[*sweep.name, self.along])
                for sweep in both
                for point in sweep.at(self.along, pair).points
            ]
            comparisons.append(Comparison(points))
        return comparisons

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause with one array: each setting's mean difference over seeds, less the margin."""
        pairs = zip(values[::2], values[1::2], strict=True)
        return [[np.array([np.mean(above(first, second, self.margin)) for first, second in pairs])]]

    def contrast(self, difference: Number) -> SignedRanks:
        """The differences in all settings as signed ranks."""
        return SignedRanks.of(np.round(difference, 9))

    def side(self, comparison: Comparison, values: Sequence[float]) -> int:
        """Whether the test of single values is for the claim (1), against it (-1), or neither
        (0)."""
        ranks = self.contrast(self.clauses(comparison, values)[0][0])
        return int(ranks.p_above() <= ALPHA) - int((-ranks).p_above() <= ALPHA)

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """The mean difference, in how many settings it is above 0, and the p-value, as text."""
        ranks = self.contrast(self.clauses(comparison, values)[0][0])
        pair = " minus ".join(self.value_name(point, names) for point in comparison.points[:2])
        return (
            f"{pair} {self.number(ranks.mean + self.margin)} on average{margin_text(self.margin)}, "
            f"larger in {ranks.above} of {ranks.n} settings (p = {ranks.p_above():.2g})"
        )


@dataclass(frozen=True, kw_only=True)
class WiderGap(ClaimAlong):
    """The difference between values of `along` is larger with some labels than with others, or in
    some rounds than in others (`at` among the labels)."""

    name: ClassVar[str] = "gap"

    between: list[Any] = parameter(
        minItems=2,
        uniqueItems=True,
        help="its values: the first one's metric minus that of each of the others",
    )
    larger: dict[str, Any] | None = parameter(
        None,
        minProperties=1,
        help="labels with which the difference is larger; at for the rounds, such as 41-100",
    )
    than: dict[str, Any] | None = parameter(
        None, minProperties=1, help="than with these; each combination is compared with each"
    )
    grows: list[Any] | None = parameter(
        None,
        items={"anyOf": [LABELS, {"type": "array", "items": LABELS, "minItems": 2}]},
        minItems=1,
        help="instead of both: labels, from each of which the difference grows to the next, or "
        "several such lists",
    )

    def check(self) -> None:
        """Raise UserError unless the claim has either `larger` and `than`, or `grows`."""
        named = [labels is not None for labels in (self.larger, self.than, self.grows)]
        if named not in ([True, True, False], [False, False, True]):
            raise UserError(
                "it needs larger and than, the labels of two differences, or else grows, a list of "
                "labels in whose order the difference grows"
            )
        for chain in self.chains():
            is_chain = isinstance(chain, list) and len(chain) > 1
            if not is_chain or not all(isinstance(labels, dict) for labels in chain):
                raise UserError("grows needs the labels of at least two settings, or lists of them")

    def chains(self) -> list[list[dict[str, Any]]]:
        """Lists of labels; from each entry of a list to the next the difference grows."""
        if self.grows is None:
            return [[self.than or {}, self.larger or {}]]
        return self.grows if isinstance(self.grows[0], list) else [self.grows]

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """Comparisons of four points: the pair of values with larger labels, then the pair with
        smaller ones, for settings that agree in all other labels."""
        first, *others = self.checked(matrix, self.between, "between")
        steps = [step for chain in self.chains() for step in pairwise(chain)]
        comparisons = []
        for other, (than, larger) in product(others, steps):
            label = {self.along: other} if len(others) > 1 else {}
            more, less = (
                self._pairs(matrix, [first, other], labels, {*larger, *than})
                for labels in (larger, than)
            )
            step = [
                Comparison([*pair.points, *smaller.points], label | pair.name)
                for pair, smaller in product(more, less)
                if pair.name == smaller.name
            ]
            if not step:
                raise UserError(
                    "two settings have no other label in common, so that nothing can be compared; "
                    "say more in given"
                )
            comparisons += step
        return comparisons

    def _pairs(
        self, matrix: Matrix, values: list[str], settings: dict[str, Any], step: set[str]
    ) -> list[Comparison]:
        """The pair of values in each of the settings, named by its labels outside of the step."""
        labels = {label: value for label, value in settings.items() if label != AT}
        pairs = []
        for sweep in matrix.sweeps(self.experiment, (self.given or {}) | labels, self.along):
            points = [
                replace(point, called=list(labels), at=settings.get(AT, ""))
                for point in sweep.at(self.along, values).points
            ]
            name = {label: value for label, value in sweep.name.items() if label not in step}
            pairs.append(Comparison(points, name))
        return pairs

    def clauses(self, comparison: Comparison, values: Sequence[Number]) -> list[list[Number]]:
        """One clause: the first two values differ by more than the last two."""
        return [[above(above(values[0], values[1]), above(values[2], values[3]))]]

    def shown(self, comparison: Comparison, values: Sequence[float], names: Names) -> str:
        """Both differences with the values that they come from, as text."""
        places = [self.place(point, names) for point in comparison.points[::2]]
        return differences_text(self, values, places)

    def opening(self, comparison: Comparison, names: Names) -> str:
        """The names of the values of `along` that are subtracted, as text."""
        first, *others = (
            short_name(self.along, label_text(value), names) for value in self.between
        )
        return f"{first} minus {' or '.join(others)}"
