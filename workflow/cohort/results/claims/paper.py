"""The paper's values for the points of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cohort.core.errors import UserError, suggest
from cohort.core.lazy import lazy
from cohort.results.claims.claim import leader_of
from cohort.results.claims.matrix import Point
from cohort.results.claims.values import NEVER, NOTHING, Value, display_scale, value_at
from cohort.results.paper import (
    PaperFile,
    PaperValue,
    doubts,
    open_paper,
    paper_files,
    split_items,
)
from cohort.results.paper_match import match_values
from cohort.results.series import NO_VALUE

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")


@dataclass(frozen=True)
class PaperPoint:
    """What the paper reports of a point of a claim: its value, and the curve from which the value
    can be read. Either may be missing."""

    value: PaperValue | None
    curve: list[PaperValue]


def paper_results(study: str, points: Sequence[Point], items: str) -> list[PaperPoint]:
    """What these items (tables and figures) of a study's paper report of each point. Raise
    UserError if an item is unknown or has two values for a point."""
    results: dict[Any, PaperPoint] = {}
    for metric, at in dict.fromkeys((point.metric, str(point.at)) for point in points):
        same = [point for point in points if (point.metric, str(point.at)) == (metric, at)]
        single, curves = _values_by_file(study, items, metric)
        # the best values are printed with the rounds in which they were reached
        printed = "max" if leader_of(at) else at
        values = _match([value for value in single if value.at == printed], same, printed)
        for point, value, curve in zip(same, values, _match(curves, same, ""), strict=True):
            results[point.key, metric, at] = PaperPoint(next(iter(value), None), curve)
    return [results[point.key, point.metric, str(point.at)] for point in points]


def _values_by_file(study: str, items: str, metric: str) -> list[list[PaperValue]]:
    """The paper's values of a metric in these items: a list from the file of single values, one
    from that of curves. Raise UserError for an item that neither holds."""
    opened = [
        open_paper(path, "") if path.exists() else PaperFile(str(path), [])
        for path in paper_files(study)
    ]
    for item in split_items(items):
        if not any(file.items_containing(item) for file in opened):
            files = " nor ".join(file.path for file in opened)
            available = [name for file in opened for name in file.items]
            raise UserError(
                f"paper is '{item}', which neither {files} holds{suggest(item, available)}"
            )
    values = []
    for file in opened:
        names = [item for item in split_items(items) if file.items_containing(item)]
        values.append(file.values(",".join(names), metric) if names else [])
    return values


def _match(values: list[PaperValue], points: Sequence[Point], at: str) -> list[list[PaperValue]]:
    labels = list(dict.fromkeys(label for point in points for label in point.labels))
    matches = match_values(values, [point.labels for point in points], labels, labels, at=at)
    values_by_labels = {tuple(match.labels.values()): match.values for match in matches}
    values_of_points = []
    for point in points:
        texts = tuple(point.labels.get(label, NO_VALUE) for label in labels)
        values_of_points.append(values_by_labels[texts])
    return values_of_points


def paper_values(points: Sequence[Point], study: str, items: str) -> list[Value]:
    """The value of each point in these items of a study's paper; a curve counts as a run."""
    if not items:
        return [Value(NOTHING)] * len(points)
    results = paper_results(study, points, items)
    if not any(leader_of(point.at) for point in points):
        return list(map(_paper_value, points, results))
    leaders = paper_results(study, list(map(_leader_point, points)), items)
    return list(map(_paper_rounds, results, leaders))


def _leader_point(point: Point) -> Point:
    """The point whose best value the given point is to reach."""
    leader = leader_of(point.at)
    assert leader, point.at
    return replace(point, labels=point.labels | dict([leader]))


def _paper_rounds(result: PaperPoint, leader: PaperPoint) -> Value:
    """The round of the paper's best value, all that it prints, if that reaches the leader's
    best."""
    value, goal = result.value, leader.value
    if value is None or goal is None or value.round is None:
        return Value(NOTHING)
    reached = value.value >= goal.value
    doubtful = doubts(used.doubtful for used in (value, goal))
    return Value(float(value.round) if reached else NEVER, 1, 1, doubtful=doubtful)


def _paper_value(point: Point, result: PaperPoint) -> Value:
    used = [result.value] if result.value else result.curve
    if not used:
        return Value(NOTHING)
    number = result.value.value if result.value else _curve_value(point, result.curve)
    number = round(number * display_scale(point.metric, point.at), 9)
    return Value(number, 1, 1, doubtful=doubts(value.doubtful for value in used))


def _curve_value(point: Point, curve: list[PaperValue]) -> float:
    frame = pd.DataFrame(curve)[["metric", "round", "value"]].assign(digest="", status="done")
    return float(value_at(frame, point.metric, point.at)["value"].iloc[0])
