"""What the runs behind a figure or table say, worked out once: every result with its runs, the
paper's value, and the difference from FedAvg.

The comparison is written as JSON beside the drawing. Tables, pages and the command line only render
it, so that they agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.sealed_json import from_json, read_sealed
from cohort.results.at import at_in_words
from cohort.results.intervals import (
    ENOUGH_SEEDS,
    JUDGED,
    NOT_ENOUGH,
    Agreement,
    Sample,
    agreement,
    holm_levels,
    margin_of,
    paired_differences,
    welch_p,
)
from cohort.results.measure import BASELINE, CLIENT, Measure
from cohort.results.names import METRICS, Names
from cohort.results.paper import PaperValue
from cohort.results.ranks import Standings
from cohort.results.series import (
    FULL,
    is_generated,
    label_columns,
    read_metric,
    runs_without,
    subtract_partners,
    value_per_cell,
    values_by_client,
)
from cohort.settings import SHARD_KEYS

if TYPE_CHECKING:
    from pandas import DataFrame

CONDITIONS = (*SHARD_KEYS, "model", "panel", CLIENT)
"""The labels of what a run is given, not of what it does with it."""

Key = tuple[str, ...]
"""The values of a result's labels."""
Runs = dict[str, float]
"""The value of each run of a result, by its seed."""

ONE_RUN, NO_RESULT, NO_PAPER = "one run", "no result", "no paper value"
FIX = "delete it and run snakemake again, which works it out anew"


@dataclass(frozen=True, kw_only=True)
class Result:
    """The runs that share their labels, the paper's value for them, and how the two compare.

    `values` holds one value per run, in the metric's stored unit: a diverged run counts with the
    worst value, an unfinished one not at all. `finished` counts the runs that ended; those of them
    without a value will never have one. `best` marks results that cannot be separated from the
    best, `verdict` says whether the paper agrees within the `margin`, or why that cannot be told,
    and `against` is the sample of differences from FedAvg seed by seed.
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
    agreement: Agreement | None = None
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
        shown = self.sample.scaled(metric.scale)
        low, high = metric.clip_interval(shown.mean, shown.interval())
        return low / metric.scale, high / metric.scale

    @property
    def difference(self) -> float:
        """Our mean less the paper's value; NaN if either is missing."""
        return self.sample.mean - (self.paper.value if self.paper else float("nan"))

    @property
    def measure(self) -> str:
        """The metric's title with its unit, and the rounds at which it was taken."""
        metric = METRICS[self.metric]
        return metric.label if metric.by == "client" else f"{metric.label}, {at_in_words(self.at)}"

    @property
    def key(self) -> Key:
        """The values of the labels."""
        return tuple(self.labels.values())


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All results of a figure or table, in the order in which they are shown.

    Only a table that ranks strategies across settings has `standings`.
    """

    labels: list[str]
    results: list[Result]
    scale: str
    generated: bool
    has_paper: bool
    standings: Standings | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as dicts, lists, texts and numbers, which JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def read(cls, file: str | Path) -> Comparison:
        """Read a comparison from a JSON file. Raise UserError if the file is missing or damaged."""
        return from_json(cls, read_sealed(file, "a comparison", FIX))

    def by_measure(self) -> dict[str, list[Result]]:
        """The results of each measure, under its title."""
        groups: dict[str, list[Result]] = {}
        for result in self.results:
            groups.setdefault(result.measure, []).append(result)
        return groups


def compare(
    measures: Sequence[Measure], spec: Mapping[str, Any], metrics_file: str | Path
) -> Comparison:
    """Compare the runs of a metrics file by each measure of a figure or table. Results have the
    study's order of each label's values."""
    labels, names = list(measures[0].labels), Names.of(spec["look"])
    results: list[Result] = []
    for measure in measures:
        metrics = read_metric(metrics_file, measure.metric)
        generated = is_generated(metrics)
        results += _compared(measure, run_values(measure, metrics), spec, with_paper=not generated)
    ranks: dict[str, dict[str, int]] = {}
    for label in labels:
        values = names.ordered(label, (result.labels[label] for result in results))
        ranks[label] = {value: rank for rank, value in enumerate(values)}
    return Comparison(
        labels=labels,
        results=sorted(results, key=lambda one: [ranks[name][one.labels[name]] for name in labels]),
        scale=spec.get("scale", FULL),
        generated=generated,
        has_paper=bool(measures[0].paper) and not generated,
    )


def run_values(measure: Measure, metrics: DataFrame) -> DataFrame:
    """One row per run, or per client, with its value if the run has ended."""
    metrics = runs_without(metrics, measure.left_out)
    if CLIENT in measure.labels:
        cells = values_by_client(metrics, measure.metric)
    else:
        cells = value_per_cell(metrics, measure.metric, measure.at)
    diverged = cells["status"] == "diverged"
    finished = diverged | (cells["status"] == "done")
    value = cells["value"].where(finished)
    cells = cells.assign(value=value, finished=finished, diverged=diverged)
    return subtract_partners(cells, measure.minus) if measure.minus else cells


def _compared(
    measure: Measure, cells: DataFrame, spec: Mapping[str, Any], *, with_paper: bool
) -> list[Result]:
    """The results of a measure, with the paper's values, the best, and differences from FedAvg."""
    results = list(_results(measure, cells))
    if measure.paper and with_paper:
        is_full = spec.get("scale", FULL) == FULL
        has_verdict = is_full and METRICS[measure.shown_metric].unit in JUDGED
        records, labels = cells.to_dict("records"), label_columns(cells)
        matches = measure.matches(spec["paper_values"], records, labels)
        # The paper's value for a curve is its last point.
        papers = {
            tuple(match.labels.values()): match.values[-1] for match in matches if match.values
        }
        results = [_with_paper(result, papers.get(result.key), has_verdict) for result in results]
    if not measure.over_settings:
        results = _with_contrasts(results)
    runs = {result.key: result.values for result in results}
    best = best_keys(runs, measure.labels, measure.better)
    return [replace(result, best=result.key in best) for result in results]


def _results(measure: Measure, cells: DataFrame) -> Iterator[Result]:
    """A result for each combination of the measure's labels, without the paper's value."""
    labels = list(measure.labels)
    groups = list(cells.groupby(labels, sort=False)) if labels else [((), cells)]
    others = [name for name in label_columns(cells) if name not in labels]
    varied = {name for _, group in groups for name in others if group[name].nunique() > 1}
    mixed = [name for name in others if name == "seed" or name in varied]
    for key, group in groups:
        valued = group[group["value"].notna()]
        runs = map(" ".join, valued[mixed].itertuples(index=False, name=None))
        yield Result(
            labels=dict(zip(labels, map(str, key), strict=True)),
            metric=measure.shown_metric,
            at=str(measure.at),
            values=dict(zip(runs, valued["value"].astype(float), strict=True)),
            planned=len(group),
            finished=int(group["finished"].sum()),
            diverged=int(group["diverged"].sum()),
        )


def _with_paper(result: Result, paper: PaperValue | None, has_verdict: bool) -> Result:
    """The result with the paper's value and, if it gets a verdict, with their agreement."""
    result = replace(result, paper=paper)
    if not has_verdict:
        return result
    if paper is None or not result.values:
        return replace(result, verdict=NO_RESULT if paper else NO_PAPER)
    margin = margin_of(paper.value, METRICS[result.metric].unit)
    agreed = agreement(
        list(result.values.values()), paper.value, paper.sd, paper.runs or 1, margin=margin
    )
    is_whole = len(result.values) == result.planned
    verdict = (agreed.verdict or ONE_RUN) if is_whole else NOT_ENOUGH
    return replace(result, margin=margin, agreement=agreed, verdict=verdict)


def _with_contrasts(results: Sequence[Result]) -> list[Result]:
    """The results, each with its differences from FedAvg's in the same setting if there is one."""
    bases = {_setting(one): one.values for one in results if one.labels.get("strategy") == BASELINE}
    compared = []
    for result in results:
        is_base = result.labels.get("strategy", BASELINE) == BASELINE
        base = {} if is_base else bases.get(_setting(result), {})
        contrast = paired_differences(result.values, base)
        compared.append(replace(result, against=contrast if contrast.n else None))
    return compared


def _setting(result: Result) -> Key:
    """The values of a result's labels that are not part of its strategy, as `selector.alpha` is."""
    return tuple(
        value for label, value in result.labels.items() if label != "strategy" and "." not in label
    )


def best_keys(results: Mapping[Key, Runs], labels: Sequence[str], better: str) -> set[Key]:
    """The keys of the results with the best mean, and of those that 95 % intervals cannot separate
    from it, among results that differ only in their strategy.

    Results without strategies compete along their last label that is no condition: one data set is
    not better than another. They are paired by seed where they have seeds in common; fewer than
    five runs are too few for a verdict and take no part.
    """
    rivals = [label for label in labels if label not in CONDITIONS]
    if not better or not rivals:
        return set()
    rival = labels.index("strategy" if "strategy" in labels else rivals[-1])
    contests: dict[Key, dict[Key, Runs]] = {}
    for key, runs in results.items():
        if len(runs) >= ENOUGH_SEEDS:
            contests.setdefault(key[:rival] + key[rival + 1 :], {})[key] = runs
    sign = 1 if better == "high" else -1
    winners = [_winners(contest, sign) for contest in contests.values() if len(contest) > 1]
    return set[Key]().union(*winners)


def _winners(contest: Mapping[Key, Runs], sign: int) -> set[Key]:
    best = max(contest, key=lambda key: sign * Sample.of(list(contest[key].values())).mean)
    others = [key for key in contest if key != best]
    p_values = [_p_value(contest[best], contest[key]) for key in others]
    tested = zip(others, p_values, holm_levels(p_values), strict=True)
    return {best, *(key for key, p_value, level in tested if p_value > level)}


def _p_value(first: Runs, second: Runs) -> float:
    differences = paired_differences(first, second)
    if differences.n > 1:
        return differences.p_value()
    return welch_p(Sample.of(list(first.values())), Sample.of(list(second.values())))
