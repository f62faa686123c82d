"""Claims that a difference is larger in one setting than in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, ClassVar

from cohort.core.components import parameter
from cohort.core.errors import UserError
from cohort.results.claims.claim import ClaimAlong, Number, above, differences_text, short_name
from cohort.results.claims.matrix import Comparison, Matrix
from cohort.results.names import Names
from cohort.results.series import label_text

AT = "at"
LABELS = {"type": "object", "minProperties": 1}


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
        chains = self.chains()
        if any(not isinstance(chain, list) or len(chain) < 2 for chain in chains) or any(
            not isinstance(labels, dict) for chain in chains for labels in chain
        ):
            raise UserError("grows needs the labels of at least two settings, or lists of them")

    def comparisons(self, matrix: Matrix) -> list[Comparison]:
        """Comparisons of four points: the pair of values with larger labels, then the pair with
        smaller ones, for settings that agree in all other labels."""
        first, *others = self.checked(matrix, self.between, "between")
        steps = [step for chain in self.chains() for step in pairwise(chain)]
        comparisons = []
        for other, (than, larger) in product(others, steps):
            step = self._step(matrix, [first, other], larger, than)
            label = {self.along: other} if len(others) > 1 else {}
            comparisons += [replace(pair, name=label | pair.name) for pair in step]
        return comparisons

    def chains(self) -> list[list[dict[str, Any]]]:
        """Lists of labels; from each entry of a list to the next the difference grows."""
        if self.grows is None:
            return [[self.than or {}, self.larger or {}]]
        return self.grows if isinstance(self.grows[0], list) else [self.grows]

    def _step(
        self, matrix: Matrix, values: list[str], more: dict[str, Any], less: dict[str, Any]
    ) -> list[Comparison]:
        step = {*more, *less}
        larger, than = (self._pairs(matrix, values, labels, step) for labels in (more, less))
        pairs = [
            Comparison([*first.points, *second.points], first.name)
            for first, second in product(larger, than)
            if first.name == second.name
        ]
        if not pairs:
            raise UserError(
                "two settings have no other label in common, so that nothing can be compared; "
                "say more in given"
            )
        return pairs

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
        first, second = above(values[0], values[1]), above(values[2], values[3])
        return [[above(first, second)]]

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
