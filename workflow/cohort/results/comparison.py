"""What the runs behind a figure or table say, worked out once: every result with its runs, the
paper's value, and the difference from FedAvg.

The comparison is written as JSON beside the drawing. Tables, pages and the command line only render
it, so that they agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.sealed_json import read_sealed
from cohort.core.typed import from_json
from cohort.results.agreement import JUDGED, Agreement, Printed, agreement, margin_of
from cohort.results.at import at_in_words
from cohort.results.best import Key, Runs, best_keys
from cohort.results.choosing import run_values
from cohort.results.intervals import NOT_ENOUGH, Sample, paired_differences
from cohort.results.measure import BASELINE, Measure
from cohort.results.names import METRICS, Names
from cohort.results.paper import PaperValue
from cohort.results.paper_match import PaperMatch
from cohort.results.ranks import Standings
from cohort.results.series import FULL, is_generated, label_columns, read_metric

if TYPE_CHECKING:
    from pandas import DataFrame

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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All results of a figure or table, in the order in which they are shown.

    `description` says in words what is seen in a figure that shows no means of its runs. Only a
    table that ranks strategies across settings has `standings`.
    """

    labels: list[str]
    results: list[Result]
    scale: str
    generated: bool
    has_paper: bool
    description: list[str] = field(default_factory=list)
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
    measures: Sequence[Measure],
    spec: Mapping[str, Any],
    metrics_file: str | Path,
) -> Comparison:
    """Compare the runs of a metrics file by each measure of a figure or table."""
    labels, names = list(measures[0].labels), Names.of(spec["look"])
    results: list[Result] = []
    for measure in measures:
        metrics = read_metric(metrics_file, measure.metric)
        generated = is_generated(metrics)
        cells = run_values(measure, metrics)
        results += _results_of_measure(measure, cells, spec, with_paper=not generated)
    return Comparison(
        labels=labels,
        results=_ordered_results(results, labels, names),
        scale=spec.get("scale", FULL),
        generated=generated,
        has_paper=bool(measures[0].paper) and not generated,
    )


def _results_of_measure(
    measure: Measure, cells: DataFrame, spec: Mapping[str, Any], *, with_paper: bool
) -> list[Result]:
    results = list(_results(measure, cells))
    if measure.paper and with_paper:
        labels = label_columns(cells)
        matches = measure.matches(spec["paper_values"], cells.to_dict("records"), labels)
        # The paper's value for a curve is its last point.
        papers = {key_of(match): match.values[-1] if match.values else None for match in matches}
        has_verdict = (
            spec.get("scale", FULL) == FULL and METRICS[measure.shown_metric].unit in JUDGED
        )
        results = [_with_paper(result, papers[key_of(result)], has_verdict) for result in results]
    results = results if measure.over_settings else _with_contrasts(results)
    runs = {key_of(result): result.values for result in results}
    best = best_keys(runs, measure.labels, measure.better)
    return [replace(result, best=key_of(result) in best) for result in results]


def key_of(result: Result | PaperMatch) -> Key:
    """The values of a result's labels."""
    return tuple(result.labels.values())


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
    printed = Printed(paper.value, paper.sd, paper.runs or 1)
    margin = margin_of(paper.value, METRICS[result.metric].unit)
    agreed = agreement(list(result.values.values()), printed, margin)
    is_whole = len(result.values) == result.planned
    verdict = (agreed.verdict or ONE_RUN) if is_whole else NOT_ENOUGH
    return replace(result, margin=margin, agreement=agreed, verdict=verdict)


def _with_contrasts(results: Sequence[Result]) -> list[Result]:
    """The results, each with its differences from FedAvg's in the same setting if there is one."""
    bases = {
        _setting(result): result.values
        for result in results
        if result.labels.get("strategy") == BASELINE
    }
    compared = []
    for result in results:
        has_base = result.labels.get("strategy", BASELINE) != BASELINE
        base = bases.get(_setting(result), {}) if has_base else {}
        contrast = paired_differences(result.values, base)
        compared.append(replace(result, against=contrast if contrast.n else None))
    return compared


def _setting(result: Result) -> Key:
    """The values of a result's labels that are not part of its strategy, as `selector.alpha` is."""
    return tuple(
        value for label, value in result.labels.items() if label != "strategy" and "." not in label
    )


def _ordered_results(
    results: Sequence[Result], labels: Sequence[str], names: Names
) -> list[Result]:
    """Sort the results by the study's order of each label's values; equal ones keep theirs."""
    ranks: dict[str, dict[str, int]] = {}
    for label in labels:
        values = names.ordered(label, (result.labels[label] for result in results))
        ranks[label] = {value: rank for rank, value in enumerate(values)}
    return sorted(
        results, key=lambda result: [ranks[name][value] for name, value in result.labels.items()]
    )
