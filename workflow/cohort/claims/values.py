"""The values of points: measured, or taken from the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from cohort.claims.claim import FIRST, counts_rounds
from cohort.claims.matrix import Point
from cohort.claims.paper import Paper, Said
from cohort.metrics.names import METRICS
from cohort.metrics.summary import At, cells_of, finite_rows, label_columns, value_per_cell

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NOTHING = float("nan")
ENDED_EARLY = (
    0.9  # a run that was last evaluated before this share of a round says nothing of that round
)


@dataclass(frozen=True)
class Value:
    """The mean over the seeds of a point, how many runs it comes from, and why it may not be what it says."""

    value: float
    n: int = 0
    planned: int = 0
    diverged: int = 0
    doubtful: str = ""

    @property
    def known(self) -> bool:
        """Whether all planned runs stand behind it."""
        return self.value == self.value and self.n == self.planned


def measured(points: Sequence[Point], read: Callable[[str, str], DataFrame | None]) -> list[Value]:
    """The values of points in the metrics that `read` finds for an experiment and a metric.

    A diverged run counts with what it measured before it diverged, an unfinished one not at all. Nothing is known of cells that are not
    planned at this scale, or whose data set is absent.
    """
    looked_at = dict.fromkeys((point.experiment, point.metric, point.at) for point in points)
    found = {
        (name, metric, at): _by_labels(read(name, metric), metric, at)
        for name, metric, at in looked_at
    }
    return [
        found[point.experiment, point.metric, point.at].get(
            tuple(sorted(point.labels.items())), Value(NOTHING)
        )
        for point in points
    ]


def _by_labels(metrics: DataFrame | None, metric: str, at: int | str) -> dict[Any, Value]:
    if metrics is None:
        return {}
    cells = value_at(metrics, metric, str(at))
    labels = [label for label in label_columns(metrics) if label != "seed"]
    counted = cells.assign(
        value=cells["value"].where(cells["status"].isin(["done", "diverged"])) * _scale(metric, at),
        diverged=cells["status"].eq("diverged"),
    )
    found = {}
    for key, group in counted.groupby(labels, sort=False):
        n = int(group["value"].count())
        mean = float(group["value"].mean()) if n else NOTHING
        found[tuple(sorted(zip(labels, key, strict=True)))] = Value(
            round(mean, 9), n, len(group), int(group["diverged"].sum())
        )
    return found


def from_paper(points: Sequence[Point], paper: Paper, item: str) -> list[Value]:
    """The paper's own values of points, those of a curve taken as those of a run."""
    if not item:
        return [Value(NOTHING)] * len(points)
    return [_said(point, said) for point, said in zip(points, paper.of(points, item), strict=True)]


def _said(point: Point, said: Said) -> Value:
    used = [said.value] if said.value else said.curve
    if not used:
        return Value(NOTHING)
    value = (said.value.value if said.value else _of_curve(point, said)) * _scale(
        point.metric, point.at
    )
    return Value(
        round(value, 9),
        1,
        1,
        doubtful="; ".join(dict.fromkeys(one.doubtful for one in used if one.doubtful)),
    )


def _scale(metric: str, at: int | str) -> float:
    """What a stored value is multiplied by to be shown."""
    return 1.0 if counts_rounds(at) else METRICS[metric].scale


def _of_curve(point: Point, said: Said) -> float:
    import pandas as pd

    rows = {
        "digest": "paper",
        "status": "done",
        "metric": point.metric,
        "round": [value.round for value in said.curve],
    }
    frame = pd.DataFrame(rows | {"value": [value.value for value in said.curve]})
    return float(value_at(frame, point.metric, str(point.at))["value"].iloc[0])


def value_at(metrics: DataFrame, metric: str, at: str) -> DataFrame:
    """One row for each planned cell with its `value`: as in `value_per_cell`, at a round, or the round at a threshold.

    At a round it is the last evaluation up to it. A run that ended or diverged without reaching a threshold never will: infinity.
    """
    if at in get_args(At):
        return value_per_cell(metrics, metric, at)  # type: ignore[arg-type]
    rows = finite_rows(metrics, metric)
    cells = cells_of(metrics)
    if not at.startswith(FIRST):
        return cells.assign(value=cells["digest"].map(_at_round(rows, int(at))).astype(float))
    rounds = _first_round(rows, float(at.removeprefix(FIRST)), METRICS[metric].better == "low")
    ended = cells["status"].isin(["done", "diverged"]) & cells["digest"].isin(
        metrics.loc[metrics["metric"] == metric, "digest"]
    )
    values = cells["digest"].map(rounds).astype(float)
    return cells.assign(value=values.where(values.notna() | ~ended, float("inf")))


def _at_round(rows: DataFrame, round: int) -> Series:
    ends = rows.groupby("digest")["round"].max()
    before = rows[rows["round"] <= round].sort_values("round").groupby("digest")["value"].last()
    return before[ends.reindex(before.index) >= ENDED_EARLY * round]


def _first_round(rows: DataFrame, threshold: float, falls: bool) -> Series:
    reached = rows["value"] <= threshold if falls else rows["value"] >= threshold
    return rows[reached].groupby("digest")["round"].min()
