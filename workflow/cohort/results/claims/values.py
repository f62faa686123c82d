"""The values of a claim's points: measured in our runs, or reported by the paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core.errors import UserError, suggest
from cohort.core.lazy import lazy
from cohort.results.claims.claim import FIRST, counts_rounds, leader_of
from cohort.results.claims.matrix import Point
from cohort.results.intervals import Sample
from cohort.results.names import METRICS
from cohort.results.paper import (
    PaperFile,
    PaperValue,
    doubts,
    match_values,
    open_paper,
    paper_files,
    split_items,
)
from cohort.results.series import (
    BELOW_CHANCE,
    NO_VALUE,
    cells_of,
    chance_level,
    finite_rows,
    label_columns,
    value_per_cell,
)

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame, Series
else:
    pd = lazy("pandas")

NOTHING, NEVER = float("nan"), float("inf")

Reported = tuple[PaperValue | None, list[PaperValue]]
"""What the paper reports of a point: its value, and the curve from which that can be read. Either
may be missing."""


@dataclass(frozen=True)
class Value:
    """The mean over a point's seeds, the runs behind it, and any doubt about a paper's value.

    `planned` counts the runs at full scale; it is 0 if this scale has none of them. `seeds` holds
    the value of each run, NEVER for one that did not reach a threshold within its `rounds`. Such a
    run counts as if it had reached it in the round after these, unless no run reached it.
    `at_chance` counts finished runs whose accuracy is that of a guess.
    """

    value: float
    n: int = 0
    planned: int = 0
    diverged: int = 0
    at_chance: int = 0
    doubtful: str = ""
    seeds: Mapping[str, float] = field(default_factory=dict)
    rounds: float = NEVER

    @property
    def is_complete(self) -> bool:
        """Whether there is a value, and all planned runs are behind it."""
        return self.value == self.value and self.n == self.planned

    @property
    def censored(self) -> int:
        """How many runs did not reach the threshold."""
        return list(self.seeds.values()).count(NEVER)

    @property
    def sample(self) -> Sample:
        """Mean and deviation over the runs, restricted to the rounds that all were trained."""
        return Sample.of([_cut_off(value, self.rounds) for value in self.seeds.values()])


def _cut_off(value: float, rounds: float) -> float:
    """The round in which a run reached a threshold; for NEVER the round after its last one."""
    return rounds + 1 if value == NEVER else value


def values_by_seed(values: Sequence[Value]) -> np.ndarray:
    """The values of runs as an array: a row for each point, a column for each seed that all have.

    If a run did not reach a threshold, all that reached it after `last_round`, or never, count as
    if they had reached it in the round after that.
    """
    common = set.intersection(*(set(value.seeds) for value in values))
    seeds = [seed for seed in values[0].seeds if seed in common]
    rows = [list(map(value.seeds.__getitem__, seeds)) for value in values]
    table = np.array(rows).reshape(len(values), len(seeds))
    return np.minimum(table, last_round(values) + 1) if (table == NEVER).any() else table


def last_round(values: Sequence[Value]) -> float:
    """The last round of the shortest run that did not reach a threshold: all are known up to it."""
    return min(value.rounds for value in values if value.censored)


def with_common_seeds(values: Sequence[Value], rows: np.ndarray) -> list[Value]:
    """The values of the seeds that all have, with the means of `rows` from `values_by_seed`."""
    common = set.intersection(*(set(value.seeds) for value in values))
    shared = []
    for value, row in zip(values, rows, strict=True):
        mean = NEVER if value.value == NEVER else round(float(row.mean()), 9)
        seeds = {seed: run for seed, run in value.seeds.items() if seed in common}
        shared.append(replace(value, value=mean, seeds=seeds))
    return shared


def measured_values(
    points: Sequence[Point], read: Callable[[str, str], DataFrame | None]
) -> list[Value]:
    """The value of each point in our runs; `read` returns the metrics of an experiment and metric.

    A diverged run counts with the worst value, an unfinished run not at all.
    Points whose cells are not planned at this scale, or whose data set is missing, have no value.
    Seeds that this scale leaves out count as planned: without them the value is not known.
    """
    results: dict[Any, dict[Any, Value]] = {}
    values = []
    for point in points:
        key = (point.experiment, point.metric, point.at)
        if key not in results:
            metrics = read(point.experiment, point.metric)
            results[key] = {} if metrics is None else _values_by_labels(metrics, *key[1:])
        value = results[key].get(frozenset(point.labels.items()), Value(NOTHING))
        planned = max(value.planned, point.seeds) if value.planned else 0
        rounds = min(value.rounds, point.rounds or NEVER)  # of a diverged run
        values.append(replace(value, planned=planned, rounds=rounds))
    return values


def _values_by_labels(metrics: DataFrame, metric: str, at: int | str) -> dict[Any, Value]:
    cells = value_at(metrics, metric, at)
    labels = [label for label in label_columns(metrics) if label != "seed"]
    done, diverged = cells["status"].eq("done"), cells["status"].eq("diverged")
    could_guess = metric.endswith("accuracy") and metric not in BELOW_CHANCE
    close_to_guess = cells["value"] <= 1.05 * cells["digest"].map(chance_level(metrics))
    lasted = cells["digest"].map(metrics.groupby("digest")["round"].max()).astype(float)
    runs = cells.assign(
        value=cells["value"].where(done | diverged) * display_scale(metric, at),
        lasted=lasted.mask(diverged, metrics["round"].max()),  # it would never get there
        diverged=diverged,
        at_chance=done & close_to_guess & (could_guess and not counts_rounds(at)),
    )
    groups: defaultdict[Any, list[Mapping[Any, Any]]] = defaultdict(list)
    for run in runs.to_dict("records"):
        groups[frozenset((label, run[label]) for label in labels)].append(run)
    return {key: _value_of_runs(group) for key, group in groups.items()}


def _value_of_runs(planned: Sequence[Mapping[Any, Any]]) -> Value:
    """The mean value over planned runs that differ in their seed only. A run's `value` is NaN if it
    is not finished; `lasted` is its last round."""
    runs = [run for run in planned if run["value"] == run["value"]]
    seeds = {str(run.get("seed", run["digest"])): run["value"] for run in runs}
    lasted = [run["lasted"] for run in runs if run["lasted"] == run["lasted"]]
    rounds = min(lasted, default=NOTHING if runs else NEVER)
    reached = any(value < NEVER for value in seeds.values())
    cut = [_cut_off(value, rounds) if reached else value for value in seeds.values()]
    return Value(
        round(float(np.mean(cut)), 9) if cut else NOTHING,
        n=len(runs),
        planned=len(planned),
        diverged=sum(run["diverged"] for run in planned),
        at_chance=sum(run["at_chance"] for run in planned),
        seeds=seeds,
        rounds=rounds,
    )


def display_scale(metric: str, at: int | str) -> float:
    """The factor from a value as stored to the value as shown."""
    return 1.0 if counts_rounds(at) else METRICS[metric].scale


def value_at(metrics: DataFrame, metric: str, at: int | str) -> DataFrame:
    """One row per planned cell, whose `value` is the metric at `at`.

    If `at` asks for a threshold, the value is the first round that reaches it: infinity if the run
    diverged or ended without reaching it, NaN if an unfinished run has not reached it yet, or if
    the run whose best value is the threshold has none. Otherwise it is that of `value_per_cell`.
    """
    if not counts_rounds(at):
        return value_per_cell(metrics, metric, at)
    rows, cells = finite_rows(metrics, metric), cells_of(metrics)
    thresholds = _thresholds(rows, cells, at)
    goals = rows["digest"].map(thresholds).astype(float)
    falls = METRICS[metric].better == "low"
    reached = rows["value"] <= goals if falls else rows["value"] >= goals
    rounds = rows[reached].groupby("digest")["round"].min()
    has_metric = cells["digest"].isin(metrics.loc[metrics["metric"] == metric, "digest"])
    diverged = cells["status"] == "diverged"
    ended = (cells["status"] == "done") & has_metric | diverged
    could = ended & cells["digest"].map(thresholds).notna()
    values = cells["digest"].map(rounds).astype(float).mask(diverged)
    return cells.assign(value=values.where(values.notna() | ~could, NEVER))


def _thresholds(rows: DataFrame, cells: DataFrame, at: int | str) -> Series:
    """Each cell's threshold, by digest: a fixed number, or the best value of its leader."""
    leader = leader_of(at)
    if leader is None:
        return pd.Series(float(str(at).removeprefix(FIRST)), index=cells["digest"])
    label, value = leader
    best = rows.groupby("digest", observed=True)["value"].max()
    others = [column for column in label_columns(cells) if column != label]
    leaders = cells[cells[label] == value]
    goals = leaders[others].assign(goal=leaders["digest"].map(best).astype(float))
    return cells.merge(goals, how="left", on=others).set_index("digest")["goal"]


def paper_values(points: Sequence[Point], study: str, items: str) -> list[Value]:
    """The value of each point in these items of a study's paper; a curve counts as a run."""
    if not items:
        return [Value(NOTHING)] * len(points)
    results = paper_results(study, points, items)
    if not any(leader_of(point.at) for point in points):
        return list(map(_paper_value, points, results))
    leaders = [
        replace(point, labels=point.labels | dict([leader]))
        for point in points
        if (leader := leader_of(point.at))
    ]
    return list(map(_paper_rounds, results, paper_results(study, leaders, items)))


def paper_results(study: str, points: Sequence[Point], items: str) -> list[Reported]:
    """What these items (tables and figures) of a study's paper report of each point. Raise
    UserError if an item is unknown or has two values for a point."""
    results: dict[Any, Reported] = {}
    for metric, at in dict.fromkeys((point.metric, str(point.at)) for point in points):
        same = [point for point in points if (point.metric, str(point.at)) == (metric, at)]
        single, curves = _values_by_file(study, items, metric)
        # the best values are printed with the rounds in which they were reached
        printed = "max" if leader_of(at) else at
        values = _match([value for value in single if value.at == printed], same, printed)
        for point, value, curve in zip(same, values, _match(curves, same, ""), strict=True):
            results[point.key, metric, at] = (next(iter(value), None), curve)
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
    return [file.values(items, metric) for file in opened]


def _match(values: list[PaperValue], points: Sequence[Point], at: str) -> list[list[PaperValue]]:
    labels = list(dict.fromkeys(label for point in points for label in point.labels))
    matches = match_values(values, [point.labels for point in points], labels, labels, at=at)
    values_by_labels = {tuple(match.labels.values()): match.values for match in matches}
    texts = [dict.fromkeys(labels, NO_VALUE) | point.labels for point in points]
    return [values_by_labels[tuple(by_label.values())] for by_label in texts]


def _paper_rounds(result: Reported, leader: Reported) -> Value:
    """The round of the paper's best value, all that it prints, if that reaches the leader's
    best."""
    (value, _), (goal, _) = result, leader
    if value is None or goal is None or value.round is None:
        return Value(NOTHING)
    reached = value.value >= goal.value
    doubtful = doubts([value.doubtful, goal.doubtful])
    return Value(float(value.round) if reached else NEVER, 1, 1, doubtful=doubtful)


def _paper_value(point: Point, result: Reported) -> Value:
    value, curve = result
    if value is None and not curve:
        return Value(NOTHING)
    if value is None:
        frame = pd.DataFrame(curve)[["metric", "round", "value"]].assign(digest="", status="done")
        number = float(value_at(frame, point.metric, point.at)["value"].iloc[0])
    else:
        number = value.value
    number = round(number * display_scale(point.metric, point.at), 9)
    doubtful = doubts(used.doubtful for used in ([value] if value else curve))
    return Value(number, 1, 1, doubtful=doubtful)
