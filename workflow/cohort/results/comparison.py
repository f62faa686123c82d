"""What a study can set for a table, and what the runs behind a figure or table say: every result
with its runs, the paper's value, and the difference from FedAvg. It is worked out once and written
as JSON; tables, pages and the command line only render it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from cohort.core.components import Component, parameter
from cohort.core.errors import UserError, check_allowed, suggest
from cohort.core.sealed_json import from_json, read_sealed
from cohort.results import series, statistics
from cohort.results.names import BASELINE, BY_CLIENT, BY_ROUND, CLIENT, GAIN, METRICS, Names
from cohort.results.paper import LabeledCell, PaperMatch, PaperValue, match_values, read_papers
from cohort.results.statistics import Sample, Standings, paired_differences
from cohort.settings import SHARD_KEYS

if TYPE_CHECKING:
    from pandas import DataFrame

CONDITIONS = (*SHARD_KEYS, "model", "panel", CLIENT)
"""Labels that describe a run's setting (data, clients, model), not its method."""

Key = tuple[str, ...]
"""The values of a result's labels."""
Runs = dict[str, float]
"""The value of each run of a result, by its seed."""

STRATEGY = "strategy"
LABEL_LIST: dict[str, Any] = {"items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
PAIRS: dict[str, Any] = {"minProperties": 1, "additionalProperties": {"type": "string"}}
ALSO_HELP = "further measures: a metric, or a metric and an at"
ALSO: dict[str, Any] = {"items": {"type": "string"}, "uniqueItems": True}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A quantity by which runs are compared: a metric `at` some rounds, by the labels that tell
    results apart.

    `paper` names the items that hold the paper's values: single ones, or the last points of
    `curves`. `minus` maps strategies to those whose results are subtracted. Runs of results
    `over_settings` differ in more than their seed. Values of labels `left_out` do not count.
    """

    metric: str
    at: int | str
    labels: tuple[str, ...]
    paper: str = ""
    curves: bool = False
    over_settings: bool = False
    minus: Mapping[str, str] | None = None
    left_out: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def shown_metric(self) -> str:
        """The metric of the results: the gain in `metric` if others are subtracted."""
        return self.metric + GAIN if self.minus else self.metric

    @property
    def better(self) -> str:
        """Which results are better: `high`, `low`, or neither."""
        return "" if self.over_settings else METRICS[self.shown_metric].better

    def matches(
        self, file: str | Path, cells: Iterable[LabeledCell], labels: Iterable[str]
    ) -> list[PaperMatch]:
        """Match the paper's values, single ones or curves, with each combination of the measure's
        labels. `labels` are all that the cells have."""
        (values,) = read_papers([Path(file)], self.paper, self.shown_metric)
        at = "" if self.curves else str(self.at)
        return match_values(values, cells, self.labels, labels, at=at)


class Item(Component):
    """Base of the kinds of figures and tables that show runs."""

    def check(self) -> None:
        """Raise UserError when the fields contradict each other."""

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        """Raise UserError when an experiment with these axes and cells cannot be shown so."""

    def labels(self) -> tuple[str, ...]:
        """Every label by which the item distinguishes runs."""
        raise NotImplementedError

    def ignores(self, label: str) -> bool:
        """Whether runs that differ only in this label may be shown as one."""
        return False

    def mentioned_values(self) -> Mapping[str, Sequence[str]]:
        """The label values that the item's fields mention, by label, for planning to check."""
        return {}

    def measures(self) -> list[Measure]:
        """The measures by which the item's results are compared."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Leaderboard(Item):
    """Strategies ranked by their mean rank over all settings of an experiment, with the interval of
    the rank, the share of seeds ahead of FedAvg, the difference from it, and further means."""

    name: ClassVar[str] = "leaderboard"

    metric: str = parameter(enum=BY_ROUND, help="what strategies are ranked by")
    at: int | str = parameter("last", help=series.AT_HELP, **series.AT_SCHEMA)
    also: list[str] | None = parameter(None, help=ALSO_HELP, **ALSO)
    without: dict[str, Any] | None = parameter(None, minProperties=1, help=statistics.WITHOUT_HELP)

    def check(self) -> None:
        statistics.check_better(self.metric)
        check_measures(self.measures(), BY_ROUND)

    def check_cells(self, axes: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> None:
        statistics.check_settings(STRATEGY, self.mentioned_values(), axes, cells)

    def labels(self) -> tuple[str, ...]:
        return (STRATEGY,)

    def ignores(self, label: str) -> bool:
        return True

    def mentioned_values(self) -> dict[str, list[str]]:
        return statistics.values_left_out(self.without)

    def measures(self) -> list[Measure]:
        left_out = self.mentioned_values()
        return measures_of(self, labels=(STRATEGY,), over_settings=True, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class Table(Item):
    """A table of means and deviations over seeds, by the labels of its rows and one of its columns.

    With `client` among the rows it shows metrics of clients, those of the first seed only: the
    client called 7 is another one for another seed.
    """

    name: ClassVar[str] = "table"

    metric: str = parameter(enum=[*BY_ROUND, *BY_CLIENT], help="what is tabulated")
    at: int | str = parameter("last", help=series.AT_HELP, **series.AT_SCHEMA)
    also: list[str] | None = parameter(
        None, help=f"{ALSO_HELP}; the measures are then the columns", **ALSO
    )
    rows: list[str] = parameter(
        help="labels whose combinations are the rows; client for metrics of clients", **LABEL_LIST
    )
    columns: str = parameter("strategy", help="the label whose values are the columns")
    paper: str = parameter("", help="the item of resources/paper_values/{study}.csv beside ours")
    minus: dict[str, Any] | None = parameter(
        None, help="the strategy to subtract from each by seed, as in {loss: fedavg}", **PAIRS
    )
    joined: bool = parameter(
        False, help="all measures, or else all values of columns, in one cell between slashes"
    )

    def facets(self) -> tuple[str, ...]:
        """The labels of the rows and of the columns."""
        return tuple(dict.fromkeys([*self.rows, self.columns]))

    def labels(self) -> tuple[str, ...]:
        return tuple(label for label in self.facets() if label != CLIENT)

    def mentioned_values(self) -> dict[str, list[str]]:
        return {STRATEGY: [*self.minus, *self.minus.values()]} if self.minus else {}

    def measures(self) -> list[Measure]:
        return measures_of(self, labels=self.facets(), paper=self.paper, minus=self.minus)

    def check(self) -> None:
        available = BY_CLIENT if CLIENT in self.rows else BY_ROUND
        if self.metric not in available:
            wanted = "with" if self.metric in BY_CLIENT else "without"
            raise UserError(f"{self.metric} is for a table {wanted} {CLIENT} among its rows")
        if self.columns == CLIENT:
            raise UserError("client belongs among the rows")
        check_measures(self.measures(), available)
        if self.minus and STRATEGY not in self.facets():
            raise UserError("minus needs the strategy among the rows, or as the columns")


def measures_of(table: Table | Leaderboard, **fields: Any) -> list[Measure]:
    """The measures of a table: its metric and those of `also`, at rounds of their own or its."""
    others = [text.partition(" ")[::2] for text in table.also or []]
    pairs = [(table.metric, table.at), *((metric, at or table.at) for metric, at in others)]
    return [Measure(metric=metric, at=at, **fields) for metric, at in pairs]


def check_measures(measures: Sequence[Measure], available: Sequence[str]) -> None:
    """Raise UserError for a measure whose metric, or its gain, or whose `at` does not exist."""
    for measure in measures:
        metric, at = measure.metric, measure.at
        check_allowed(metric, available, f"also names the metric '{metric}', which is not known")
        if at not in series.WORDS and not series.rounds_of(at):
            raise UserError(f"also: '{at}' is not a value of at{suggest(str(at), series.WORDS)}")
        if measure.shown_metric not in METRICS:
            raise UserError(f"minus cannot subtract {metric}, of which no gain is known")


@dataclass(frozen=True, kw_only=True)
class Result:
    """The runs that share their labels, the paper's value for them, and how the two compare.

    `values` holds one value per run, in the metric's stored unit: a diverged run counts with the
    worst value, an unfinished one not at all. `finished` counts the runs that ended, with a value
    or without. `best` marks what cannot be separated from the best, `verdict` says whether the
    paper agrees within the `margin`, and `against` has the differences from FedAvg seed by seed.
    """

    labels: dict[str, str]
    metric: str
    at: str
    values: Runs
    planned: int
    finished: int
    diverged: int
    best: bool = False
    paper: PaperValue | None = None
    margin: float | None = None
    difference_interval: tuple[float, float] | None = None
    verdict: str = ""
    against: Sample | None = None

    @cached_property
    def sample(self) -> Sample:
        """Mean and deviation of the runs."""
        return Sample.of(list(self.values.values()))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean; that of a share stays between 0 and 100 %."""
        metric = METRICS[self.metric]
        scaled = self.sample.scaled(metric.scale)
        low, high = metric.clip_interval(scaled.mean, scaled.interval())
        return low / metric.scale, high / metric.scale

    @property
    def difference(self) -> float:
        """Our mean less the paper's value; NaN if either is missing."""
        return self.sample.mean - (self.paper.value if self.paper else float("nan"))

    @property
    def measure(self) -> str:
        """The metric's title with its unit, and the rounds at which it was taken."""
        metric = METRICS[self.metric]
        return metric.label + ("" if metric.by == "client" else f", {series.at_in_words(self.at)}")

    @property
    def key(self) -> Key:
        """The values of the labels."""
        return tuple(self.labels.values())


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All results of a figure or table, in the order in which they are shown. Only a table that
    ranks strategies across settings has `standings`."""

    labels: list[str]
    results: list[Result]
    scale: str
    has_paper: bool
    standings: Standings | None = None

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """Read a comparison from a JSON file. Raise UserError if the file is missing or damaged."""
        return from_json(cls, read_sealed(file, "a comparison"))

    def by_measure(self) -> dict[str, list[Result]]:
        """The results of each measure, under its title."""
        groups: dict[str, list[Result]] = {}
        for result in self.results:
            groups.setdefault(result.measure, []).append(result)
        return groups


def compare(
    measures: Sequence[Measure], spec: Mapping[str, Any], metrics_file: str | Path
) -> Comparison:
    """Compare a metrics file's runs by each measure. Results follow the study's order of values."""
    labels, names = list(measures[0].labels), Names.of(spec["style"])
    results: list[Result] = []
    for measure in measures:
        metrics = series.read_metric(metrics_file, measure.metric)
        metrics = series.runs_without(metrics, measure.left_out)
        if CLIENT in measure.labels:
            cells = series.values_by_client(metrics, measure.metric)
        else:
            cells = series.value_per_cell(metrics, measure.metric, measure.at)
        diverged = cells["status"] == "diverged"
        finished = diverged | (cells["status"] == "done")
        value = cells["value"].where(finished)
        cells = cells.assign(value=value, finished=finished, diverged=diverged)
        cells = series.subtract_partners(cells, measure.minus) if measure.minus else cells
        measured = list(_results(measure, cells))
        if measure.paper:
            measured = _with_paper(measured, measure, cells, spec)
        measured = measured if measure.over_settings else _with_contrasts(measured)
        runs = {result.key: result.values for result in measured}
        best = best_keys(runs, measure.labels, measure.better)
        results += [replace(result, best=result.key in best) for result in measured]
    for label in reversed(labels):
        order = names.ordered(label, (result.labels[label] for result in results))
        results.sort(key=lambda result: order.index(result.labels[label]))
    return Comparison(
        labels=labels,
        results=results,
        scale=spec.get("scale", series.FULL),
        has_paper=bool(measures[0].paper),
    )


def _results(measure: Measure, cells: DataFrame) -> Iterator[Result]:
    """A result for each combination of the measure's labels, without the paper's value."""
    labels = list(measure.labels)
    groups = list(cells.groupby(labels, sort=False)) if labels else [((), cells)]
    others = [name for name in series.label_columns(cells) if name not in labels]
    varied = {name for _, group in groups for name in others if group[name].nunique() > 1}
    mixed = [name for name in others if name == "seed" or name in varied]
    for key, group in groups:
        with_value = group[group["value"].notna()]
        runs = map(" ".join, with_value[mixed].itertuples(index=False, name=None))
        yield Result(
            labels=dict(zip(labels, map(str, key), strict=True)),
            metric=measure.shown_metric,
            at=str(measure.at),
            values=dict(zip(runs, with_value["value"].astype(float), strict=True)),
            planned=len(group),
            finished=int(group["finished"].sum()),
            diverged=int(group["diverged"].sum()),
        )


def _with_paper(
    results: Sequence[Result], measure: Measure, cells: DataFrame, spec: Mapping[str, Any]
) -> list[Result]:
    """Add the paper's values (of a curve the last one until ours ends, if it is not much earlier)
    and, at full scale, the agreement with them."""
    records, labels = cells.to_dict("records"), series.label_columns(cells)
    matches = measure.matches(spec["paper_values"], records, labels)
    papers = {tuple(match.labels.values()): match.values for match in matches if match.values}
    if measure.curves:
        ends = (
            cells.groupby(cells[list(measure.labels)].agg(tuple, axis=1))["end"].max().astype(float)
        )
        for key, values in papers.items():
            first, last = series.ENDED_EARLY * ends[key], ends[key]
            papers[key] = [value for value in values if first <= (value.round or 0) <= last]
    unit = METRICS[measure.shown_metric].unit
    has_verdict = spec.get("scale", series.FULL) == series.FULL and unit in statistics.JUDGED
    compared = []
    for result in results:
        runs, paper = list(result.values.values()), [None, *papers.get(result.key, [])][-1]
        result = replace(result, paper=paper)
        if has_verdict and paper and runs:
            margin = statistics.margin_of(paper.value, unit)
            printed = paper.value, paper.sd, paper.runs or 1
            interval, agreed = statistics.agreement(runs, *printed, margin=margin)
            is_whole = len(runs) == result.planned
            verdict = (agreed or "one run") if is_whole else statistics.NOT_ENOUGH
            result = replace(result, margin=margin, difference_interval=interval, verdict=verdict)
        elif has_verdict:
            result = replace(result, verdict="no result" if paper else "no paper value")
        compared.append(result)
    return compared


def _with_contrasts(results: Sequence[Result]) -> list[Result]:
    """The results, each with its differences from FedAvg's in the same setting if there is one. The
    setting is all labels that are not part of a strategy, as `selector.alpha` is."""

    def setting(result: Result) -> Key:
        labels = result.labels.items()
        return tuple(value for name, value in labels if name != STRATEGY and "." not in name)

    bases = [result for result in results if result.labels.get(STRATEGY) == BASELINE]
    base_values = {setting(base): base.values for base in bases}
    compared = []
    for result in results:
        is_base = result.labels.get(STRATEGY, BASELINE) == BASELINE
        contrast = paired_differences(result.values, base_values.get(setting(result), {}))
        against = contrast if contrast.n and not is_base else None
        compared.append(replace(result, against=against))
    return compared


def best_keys(results: Mapping[Key, Runs], labels: Sequence[str], better: str) -> set[Key]:
    """The keys of the results with the best mean, and of those that 95 % intervals cannot separate
    from it, among results that differ only in their strategy.

    Results without strategies compete along their last label that is no condition: one data set is
    not better than another. They are paired by seed; without two seeds in common they cannot be
    separated. Fewer than five runs take no part. If all are alike, none is the best.
    """
    rivals = [label for label in labels if label not in CONDITIONS]
    if not better or not rivals:
        return set()
    rival = labels.index("strategy" if "strategy" in labels else rivals[-1])
    contests: defaultdict[Key, dict[Key, Runs]] = defaultdict(dict)
    for key, runs in results.items():
        if len(runs) >= statistics.ENOUGH_SEEDS:
            contests[key[:rival] + key[rival + 1 :]][key] = runs
    winners: set[Key] = set()
    for contest in contests.values():
        means = {key: np.mean(list(runs.values())) for key, runs in contest.items()}
        first = (max if better == "high" else min)(means, key=means.__getitem__)
        others = [key for key in contest if key != first]
        p_values = [paired_differences(contest[first], contest[key]).p_value() for key in others]
        tested = zip(others, p_values, statistics.holm_levels(p_values), strict=True)
        best = {first, *(key for key, p_value, level in tested if p_value > level)}
        winners |= best if len(best) < len(contest) else set()
    return winners
