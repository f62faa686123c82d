"""The values of a claim's points: measured in our runs, or reported by the paper."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cohort.core.lazy import lazy
from cohort.results import names, paper, series
from cohort.results.claims.claim import BEST_OF, FIRST, Point, counts_rounds

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = lazy("pandas")

NOTHING, NEVER = float("nan"), float("inf")

Reported = tuple[paper.PaperValue | None, list[paper.PaperValue]]
"""What the paper reports of a point: a value, and the curve that it is on; both may be missing."""


@dataclass(frozen=True)
class Value:
    """The mean over a point's seeds, the runs behind it, and any doubt about a paper's value.

    `planned` counts the runs at full scale, 0 if this scale has none of them. `seeds` has the value
    of each run, NEVER for one that did not reach a threshold within its `rounds`; it counts as if
    it had a round later, unless none did. `at_chance` counts finished runs no better than a guess.
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

    def cut_off(self) -> list[float]:
        """The value of each run; the round after the last one if it never reached a threshold."""
        return [self.rounds + 1 if value == NEVER else value for value in self.seeds.values()]


def on_common_seeds(values: Sequence[Value]) -> tuple[np.ndarray, list[Value]]:
    """The runs of those seeds that all points have: as an array with a row for each point, and as
    values of these seeds only. Rounds after `last_round` count as the one after it."""
    common = set.intersection(*(set(value.seeds) for value in values))
    seeds = [seed for seed in values[0].seeds if seed in common]
    table = np.array([list(map(value.seeds.__getitem__, seeds)) for value in values])
    if (table == NEVER).any():
        table = np.minimum(table, last_round(values) + 1)
    shared = []
    for value, row in zip(values, table, strict=True):
        mean = round(float(np.mean(row)), 9) if seeds else NOTHING
        mean = NEVER if value.value == NEVER else mean
        runs = {seed: run for seed, run in value.seeds.items() if seed in common}
        shared.append(replace(value, value=mean, seeds=runs))
    return table, shared


def last_round(values: Sequence[Value]) -> float:
    """The last round of the shortest run that did not reach a threshold: up to it, every run is
    known to have reached it or not."""
    return min(value.rounds for value in values if value.censored)


def measured_values(
    points: Sequence[Point], read: Callable[[str, str], pd.DataFrame | None]
) -> list[Value]:
    """The value of each point in our runs; `read` returns the metrics of an experiment and metric.
    A diverged run counts with the worst value, an unfinished one not at all. What is not planned at
    this scale has no value; seeds that the scale leaves out count as planned."""
    results: dict[Any, Mapping[Any, list[Mapping[Any, Any]]]] = {}
    values = []
    for point in points:
        key = (point.experiment, point.metric, point.at)
        if key not in results:
            metrics = read(point.experiment, point.metric)
            results[key] = {} if metrics is None else _runs_by_labels(metrics, *key[1:])
        planned = results[key].get(frozenset(point.labels.items()), [])
        runs = [run for run in planned if not math.isnan(run["value"])]
        lasted = [run["lasted"] for run in runs if not math.isnan(run["lasted"])]
        value = Value(
            NOTHING,
            n=len(runs),
            planned=max(len(planned), point.seeds) if planned else 0,
            diverged=sum(run["diverged"] for run in planned),
            at_chance=sum(run["at_chance"] for run in planned),
            seeds={str(run.get("seed", run["digest"])): run["value"] for run in runs},
            rounds=min(lasted, default=NOTHING if runs else NEVER),
        )
        if runs:
            mean = np.mean(value.cut_off()) if value.censored < len(runs) else NEVER
            value = replace(value, value=round(float(mean), 9))
        limit = point.rounds or NEVER  # of a diverged run
        values.append(replace(value, rounds=min(value.rounds, limit)))
    return values


def _runs_by_labels(
    metrics: pd.DataFrame, metric: str, at: int | str
) -> Mapping[Any, list[Mapping[Any, Any]]]:
    """The planned runs of each point by its labels: the `value`, NaN if unfinished, the last round
    that a run `lasted`, and whether it `diverged` or ended `at_chance`."""
    cells, scale = value_at(metrics, metric, at), names.METRICS[metric].scale
    labels = [label for label in series.label_columns(metrics) if label != "seed"]
    done, diverged = cells["status"].eq("done"), cells["status"].eq("diverged")
    could_guess = metric.endswith("accuracy") and metric not in series.BELOW_CHANCE
    close_to_guess = cells["value"] <= 1.05 * cells["digest"].map(series.chance_level(metrics))
    ends = (metrics["round"] / series.shares_of(metrics)).astype(float)  # of the full scale
    lasted = cells["digest"].map(ends.groupby(metrics["digest"]).max())
    cells = cells.assign(
        value=cells["value"].where(done | diverged) * (1 if counts_rounds(at) else scale),
        lasted=lasted.mask(diverged, ends.max()),  # it would never get there
        diverged=diverged,
        at_chance=done & close_to_guess & (could_guess and not counts_rounds(at)),
    )
    runs: defaultdict[Any, list[Mapping[Any, Any]]] = defaultdict(list)
    for run in cells.to_dict("records"):
        runs[frozenset((label, run[label]) for label in labels)].append(run)
    return runs


def value_at(metrics: pd.DataFrame, metric: str, at: int | str) -> pd.DataFrame:
    """One row per planned cell, whose `value` is the metric at `at`. If `at` asks for a threshold,
    the value is the first round that reaches it: infinity if the run diverged or ended without
    reaching it, NaN if an unfinished run has not reached it yet, or if the run whose best value is
    the threshold has none. Otherwise it is that of `value_per_cell`."""
    if not counts_rounds(at):
        return series.value_per_cell(metrics, metric, at)
    rows, cells = series.finite_rows(metrics, metric), series.cells_of(metrics)
    thresholds = _thresholds(rows, cells, at)
    goals = rows["digest"].map(thresholds).astype(float)
    falls = names.METRICS[metric].better == "low"
    reached = rows["value"] <= goals if falls else rows["value"] >= goals
    full = rows["round"] / series.shares_of(rows)  # rounds are those of the full scale
    rounds = full[reached].groupby(rows["digest"]).min()
    has_metric = cells["digest"].isin(metrics.loc[metrics["metric"] == metric, "digest"])
    diverged = cells["status"] == "diverged"
    ended = (cells["status"] == "done") & has_metric | diverged
    could = ended & cells["digest"].map(thresholds).notna()
    values = cells["digest"].map(rounds).astype(float).mask(diverged)
    return cells.assign(value=values.where(values.notna() | ~could, NEVER))


def _thresholds(rows: pd.DataFrame, cells: pd.DataFrame, at: int | str) -> pd.Series:
    """Each cell's threshold, by digest: a fixed number, or the best value of its leader."""
    leader = leader_of(at)
    if leader is None:
        return pd.Series(float(str(at).removeprefix(FIRST)), index=cells["digest"])
    label, value = leader
    best = rows.groupby("digest", observed=True)["value"].max()
    others = [column for column in series.label_columns(cells) if column != label]
    leaders = cells[cells[label] == value]
    goals = leaders[others].assign(goal=leaders["digest"].map(best).astype(float))
    return cells.merge(goals, how="left", on=others).set_index("digest")["goal"]


def leader_of(at: int | str) -> tuple[str, str] | None:
    """The label and the value of the runs whose best value `at` asks for, the run's own or that of
    the run with this value and equal other labels; None for any other `at`."""
    if not str(at).startswith(BEST_OF):
        return None
    label, _, value = str(at).removeprefix(BEST_OF).partition(" ")
    return label, value


def paper_values(points: Sequence[Point], study: str, items: str) -> list[Value]:
    """The value of each point in these items of a study's paper; a curve counts as a run."""
    if not items:
        return [Value(NOTHING)] * len(points)
    results = paper_results(study, points, items)
    leaders = [
        replace(point, labels=point.labels | dict(filter(None, [leader_of(point.at)])))
        for point in points
    ]
    goals = results if leaders == points else paper_results(study, leaders, items)
    values = []
    for point, (printed, curve), (goal, _) in zip(points, results, goals, strict=True):
        number, used = NOTHING, [printed] if printed else curve
        if leader_of(point.at):  # the round of the best value is all that papers print
            used = []
            if printed and goal and printed.round is not None:
                used = [printed, goal]
                number = float(printed.round) if printed.value >= goal.value else NEVER
        elif printed:
            number = printed.value
        elif curve:
            frame = pd.DataFrame(curve)[["metric", "round", "value"]]
            metrics = frame.assign(digest="", status="done")
            number = float(value_at(metrics, point.metric, point.at)["value"].iloc[0])
        scale = 1 if counts_rounds(point.at) else names.METRICS[point.metric].scale
        number = round(number * scale, 9)
        runs, doubtful = int(bool(used)), paper.doubts(value.doubtful for value in used)
        values.append(Value(number, runs, runs, doubtful=doubtful))
    return values


def paper_results(study: str, points: Sequence[Point], items: str) -> list[Reported]:
    """What these items of a study's paper report of each point. Raise UserError if an item is
    unknown or has two values for a point."""
    results: dict[Any, Reported] = {}
    for metric, at in dict.fromkeys((point.metric, str(point.at)) for point in points):
        measured = [point for point in points if (point.metric, str(point.at)) == (metric, at)]
        labels = list(dict.fromkeys(label for point in measured for label in point.labels))
        single, curves = paper.read_papers(paper.paper_files(study), items, metric)
        # the best values are printed with the rounds in which they were reached
        printed = "max" if leader_of(at) else at
        single = [value for value in single if value.at == printed]
        matched = []
        for values, where in ((single, printed), (curves, "")):
            cells = [point.labels for point in measured]
            matches = paper.match_values(values, cells, labels, labels, at=where)
            matched.append({tuple(match.labels.values()): match.values for match in matches})
        for point in measured:
            key = tuple(point.labels.get(label, series.NO_VALUE) for label in labels)
            value, curve = (by_labels[key] for by_labels in matched)
            results[point.key, metric, at] = (next(iter(value), None), curve)
    return [results[point.key, point.metric, str(point.at)] for point in points]
