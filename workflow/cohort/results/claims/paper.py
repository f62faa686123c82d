"""The paper's values for the points of a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cohort.core.errors import UserError, suggest
from cohort.results.claims.claim import leader_of
from cohort.results.claims.matrix import Point
from cohort.results.paper import PaperFile, PaperValue, open_paper, paper_files, split_items
from cohort.results.paper_match import match_values
from cohort.results.series import NO_VALUE


@dataclass(frozen=True)
class PaperPoint:
    """What the paper reports of a point of a claim: its value, and the curve from which the value
    can be read. Either may be missing."""

    value: PaperValue | None
    curve: list[PaperValue]


class Paper:
    """The values that a study's paper prints."""

    def __init__(self, study: str):
        self._files = [
            open_paper(path, "") if path.exists() else PaperFile(str(path), [])
            for path in paper_files(study)
        ]

    def results(self, points: Sequence[Point], items: str) -> list[PaperPoint]:
        """What the paper's `items` (tables and figures) report of each point. Raise UserError if an
        item is unknown or has two values for a point."""
        results: dict[int, PaperPoint] = {}
        for metric, at in dict.fromkeys((point.metric, str(point.at)) for point in points):
            indices = [
                index
                for index, point in enumerate(points)
                if (point.metric, str(point.at)) == (metric, at)
            ]
            same = [points[index] for index in indices]
            single, curves = self._values_by_file(items, metric)
            # the best values are printed with the rounds in which they were reached
            printed = "max" if leader_of(at) else at
            values = self._match([value for value in single if value.at == printed], same, printed)
            matches = zip(indices, values, self._match(curves, same, ""), strict=True)
            for index, value, curve in matches:
                results[index] = PaperPoint(next(iter(value), None), curve)
        return [results[index] for index in range(len(points))]

    def _values_by_file(self, items: str, metric: str) -> list[list[PaperValue]]:
        """The paper's values of a metric in these items (its tables and figures): a list from the
        file of single values, one from that of curves. Raise UserError for an item that neither
        holds."""
        for item in split_items(items):
            if not any(file.items_containing(item) for file in self._files):
                files = " nor ".join(file.path for file in self._files)
                available = [name for file in self._files for name in file.items]
                raise UserError(
                    f"paper is '{item}', which neither {files} holds{suggest(item, available)}"
                )
        values = []
        for file in self._files:
            names = [item for item in split_items(items) if file.items_containing(item)]
            values.append(file.values(",".join(names), metric) if names else [])
        return values

    def _match(
        self, values: list[PaperValue], points: Sequence[Point], at: str
    ) -> list[list[PaperValue]]:
        labels = list(dict.fromkeys(label for point in points for label in point.labels))
        cells = [point.labels for point in points]
        matches = {
            tuple(match.labels.items()): match.values
            for match in match_values(values, cells, labels, labels, at=at)
        }
        return [matches[tuple(zip(labels, _texts(cell, labels), strict=True))] for cell in cells]


def _texts(cell: Mapping[str, str], labels: Sequence[str]) -> list[str]:
    return [cell.get(label, NO_VALUE) for label in labels]
