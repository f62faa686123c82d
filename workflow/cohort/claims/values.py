"""The values of a claim's points: measured in our runs, or taken from the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cohort.claims.claim import FIRST, counts_rounds
from cohort.claims.matrix import Point
from cohort.claims.paper import Paper, PaperResult
from cohort.core.lazy import lazy
from cohort.metrics.names import METRICS
from cohort.metrics.summary import cells_of, finite_rows, label_columns, value_per_cell

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame, Series

    from cohort.metrics.paper import PaperValue
else:
    pd = lazy("pandas")

NOTHING = float("nan")


@dataclass(frozen=True)
class Value:
    """The mean over a point's seeds, the runs behind it, and any doubt about a paper's value.

    `planned` counts the runs at full scale; it is 0 if this scale has none of them.
    """

    value: float
    n: int = 0
    planned: int = 0
    diverged: int = 0
    doubtful: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value, and all planned runs are behind it."""
        return self.value == self.value and self.n == self.planned


def measured(points: Sequence[Point], read: Callable[[str, str], DataFrame | None]) -> list[Value]:
    """The value of each point in our runs; `read` returns the metrics of an experiment and metric.

    A diverged run counts with its value from before it diverged, an unfinished run not at all.
    Points whose cells are not planned at this scale, or whose data set is missing, have no value.
    Seeds that this scale leaves out count as planned: without them the value is not known.
    """
    keys = dict.fromkeys((point.experiment, point.metric, point.at) for point in points)
    found = {
        (name, metric, at): _by_labels(read(name, metric), metric, at) for name, metric, at in keys
    }
    values = []
    for point in points:
        labels = tuple(sorted(point.labels.items()))
        value = found[point.experiment, point.metric, point.at].get(labels, Value(NOTHING))
        planned = max(value.planned, point.seeds) if value.planned else 0
        values.append(replace(value, planned=planned))
    return values


def _by_labels(metrics: DataFrame | None, metric: str, at: int | str) -> dict[Any, Value]:
    if metrics is None:
        return {}
    cells = value_at(metrics, metric, at)
    labels = [label for label in label_columns(metrics) if label != "seed"]
    finished = cells["status"].isin(["done", "diverged"])
    counted = cells.assign(
        value=cells["value"].where(finished) * _scale(metric, at),
        diverged=cells["status"].eq("diverged"),
    )
    found = {}
    for key, group in counted.groupby(labels, sort=False):
        n = int(group["value"].count())
        mean = round(float(group["value"].mean()), 9) if n else NOTHING
        diverged = int(group["diverged"].sum())
        found[tuple(sorted(zip(labels, key, strict=True)))] = Value(mean, n, len(group), diverged)
    return found


def from_paper(points: Sequence[Point], paper: Paper, items: str) -> list[Value]:
    """The value of each point in these items of the paper; a curve counts as a run."""
    if not items:
        return [Value(NOTHING)] * len(points)
    results = paper.results(points, items)
    return [_paper_value(point, result) for point, result in zip(points, results, strict=True)]


def _paper_value(point: Point, result: PaperResult) -> Value:
    used = [result.value] if result.value else result.curve
    if not used:
        return Value(NOTHING)
    value = result.value.value if result.value else _of_curve(point, result.curve)
    doubts = dict.fromkeys(one.doubtful for one in used if one.doubtful)
    return Value(round(value * _scale(point.metric, point.at), 9), 1, 1, doubtful="; ".join(doubts))


def _scale(metric: str, at: int | str) -> float:
    """The factor from a stored value to the shown one."""
    return 1.0 if counts_rounds(at) else METRICS[metric].scale


def _of_curve(point: Point, curve: list[PaperValue]) -> float:
    frame = pd.DataFrame(
        {
            "digest": "paper",
            "status": "done",
            "metric": point.metric,
            "round": [value.round for value in curve],
            "value": [value.value for value in curve],
        }
    )
    return float(value_at(frame, point.metric, point.at)["value"].iloc[0])


def value_at(metrics: DataFrame, metric: str, at: int | str) -> DataFrame:
    """One row per planned cell with its `value` at a threshold, or as `value_per_cell`.

    At a threshold it is the first round that reaches it, and infinity for a run that ended or
    diverged without reaching it.
    """
    if not counts_rounds(at):
        return value_per_cell(metrics, metric, at)
    rows, cells = finite_rows(metrics, metric), cells_of(metrics)
    threshold = float(str(at).removeprefix(FIRST))
    rounds = _first_round(rows, threshold, METRICS[metric].better == "low")
    has_metric = cells["digest"].isin(metrics.loc[metrics["metric"] == metric, "digest"])
    ended = (cells["status"] == "done") & has_metric | (cells["status"] == "diverged")
    values = cells["digest"].map(rounds).astype(float)
    return cells.assign(value=values.where(values.notna() | ~ended, float("inf")))


def _first_round(rows: DataFrame, threshold: float, falls: bool) -> Series:
    reached = rows["value"] <= threshold if falls else rows["value"] >= threshold
    return rows[reached].groupby("digest")["round"].min()
