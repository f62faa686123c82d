"""Chooses the value of a swept setting for each result, on other data than those that are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from cohort.results.measure import CLIENT, Measure
from cohort.results.names import Names
from cohort.results.series import (
    read_metric,
    runs_without,
    subtract_partners,
    value_per_cell,
    values_by_client,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Key = tuple[str, ...]
TEST, VALIDATION = "test_", "validation_"


@dataclass(frozen=True)
class Choice:
    """The chosen value of a measure's swept setting for each combination of its labels, and the
    seeds to show."""

    measure: Measure
    values: Mapping[Key, str]
    seeds: Sequence[str]
    reason: str

    def keep(self, cells: DataFrame) -> DataFrame:
        """The runs with the chosen values; where nothing was chosen, none."""
        keys = cells[list(self.measure.labels)].itertuples(index=False, name=None)
        chosen = [self.values.get(key) for key in keys]
        return cells[(cells[self.measure.best] == chosen) & cells["seed"].isin(self.seeds)]

    def sentence(self, names: Names) -> str:
        """`Learning rate: 0.1 (FedAvg, FedProx), 0.5 (SCAFFOLD); best in the mean of ...`"""
        setting, by_value = self.measure.best, dict[str, list[str]]()
        varied = [len(set(column)) > 1 for column in zip(*self.values, strict=True)]
        for key, value in self.values.items():
            told_apart = compress(zip(self.measure.labels, key, strict=True), varied)
            words = [names.value(label, part) for label, part in told_apart]
            by_value.setdefault(value, []).append(" ".join(words))
        values = names.ordered(setting, by_value)
        texts = [
            f"{names.value(setting, value)} ({', '.join(by_value[value])})".removesuffix(" ()")
            for value in values
        ]
        return f"{names.title(setting)}: {', '.join(texts) or 'none'}; {self.reason}."


def choose(measure: Measure, metrics_file: str | Path) -> Choice:
    """Choose the value of the measure's swept setting for each of its results: by the same measure
    on validation samples, where the runs have that, or else in the first half of the seeds, which
    are then not shown."""
    named = measure.metric.replace(TEST, VALIDATION, 1)
    metrics = read_metric(metrics_file, named)
    if named != measure.metric and metrics["metric"].eq(named).any():
        cells = run_values(replace(measure, metric=named), metrics)
        shown, reason = list(cells["seed"].unique()), "best in the mean on validation samples"
    else:
        cells = run_values(measure, read_metric(metrics_file, measure.metric))
        seeds = sorted(cells["seed"].unique(), key=int)
        half = len(seeds) // 2
        shown, cells = seeds[half:], cells[cells["seed"].isin(seeds[:half])]
        reason = f"best in the mean of the first {half} of {len(seeds)} seeds; the others are shown"
        reason = reason if half else "a single seed leaves none to choose by"
    return Choice(measure, _best(measure, cells), shown, reason)


def run_values(measure: Measure, metrics: DataFrame) -> DataFrame:
    """One row per run, or per client, with its value if the run has ended."""
    metrics = runs_without(metrics, measure.left_out)
    if CLIENT in measure.labels:
        cells = values_by_client(metrics, measure.metric)
    else:
        cells = value_per_cell(metrics, measure.metric, measure.at)
    finished = cells["status"].isin(["done", "diverged"])
    cells = cells.assign(
        value=cells["value"].where(finished),
        finished=finished,
        diverged=cells["status"] == "diverged",
    )
    return subtract_partners(cells, measure.minus) if measure.minus else cells


def _best(measure: Measure, cells: DataFrame) -> dict[Key, str]:
    """The value with the best mean for each combination of labels that has any."""
    labels, values = list(measure.labels), cells[cells["value"].notna()]
    means = values.groupby([*labels, measure.best], sort=False)["value"].mean().reset_index()
    ranked = means.sort_values("value", ascending=measure.better == "low", kind="stable")
    first = ranked.drop_duplicates(labels)
    keys = first[labels].itertuples(index=False, name=None)
    return dict(zip(keys, first[measure.best], strict=True))
