"""What the paper says of the points of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cohort.claims.matrix import Point
from cohort.core.errors import UserError, suggest
from cohort.metrics.paper import FOLDER, PaperValue, Rows, held, parts_of, pick, read_rows
from cohort.metrics.paper_match import match_values
from cohort.metrics.summary import NO_VALUE


def paper_files(study: str) -> tuple[Path, Path]:
    """Where a paper's single values lie, and its curves."""
    return FOLDER / f"{study}.csv", FOLDER / f"{study}_curves.csv"


@dataclass(frozen=True)
class Said:
    """What the paper says of a point: the value that is asked for, or a curve from which it follows, or nothing."""

    value: PaperValue | None
    curve: list[PaperValue]


class Paper:
    """The values of a study's paper. Each of its two files is read once, and either may be missing."""

    def __init__(self, study: str):
        self._files = paper_files(study)
        self._rows: list[Rows] = [
            read_rows(file, "") if file.exists() else {} for file in self._files
        ]

    def of(self, points: Sequence[Point], item: str) -> list[Said]:
        """What these items say of each point; UserError where an item is not known, or says two things of one point."""
        found: dict[int, Said] = {}
        for metric, at in dict.fromkeys((point.metric, str(point.at)) for point in points):
            places = [
                place
                for place, point in enumerate(points)
                if (point.metric, str(point.at)) == (metric, at)
            ]
            alike = [points[place] for place in places]
            single, curves = self._values(item, metric)
            values = self._match([value for value in single if value.at == at], alike, at)
            said = [
                Said(next(iter(one), None), curve)
                for one, curve in zip(values, self._match(curves, alike, ""), strict=True)
            ]
            found |= dict(zip(places, said, strict=True))
        return [found[place] for place in range(len(points))]

    def _values(self, item: str, metric: str) -> list[list[PaperValue]]:
        """The values of these items in each file."""
        known = dict.fromkeys(row["item"] for rows in self._rows for row in rows.values())
        for one in parts_of(item):
            if not any(held(rows, one) for rows in self._rows):
                files = " nor ".join(map(str, self._files))
                raise UserError(
                    f"paper is '{one}', which neither {files} holds{suggest(one, known)}"
                )
        found = []
        for file, rows in zip(self._files, self._rows, strict=True):
            mine = [one for one in parts_of(item) if held(rows, one)]
            found.append(pick(rows, file, ",".join(mine), metric) if mine else [])
        return found

    def _match(
        self, values: list[PaperValue], points: Sequence[Point], at: str
    ) -> list[list[PaperValue]]:
        labels = list(dict.fromkeys(label for point in points for label in point.labels))
        found = {
            tuple(one.labels.items()): one.values
            for one in match_values(
                values, [point.labels for point in points], labels, labels, at=at
            )
        }
        texts = [
            tuple((label, point.labels.get(label, NO_VALUE)) for label in labels)
            for point in points
        ]
        return [found[text] for text in texts]
