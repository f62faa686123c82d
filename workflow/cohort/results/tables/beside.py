"""The strategies of a figure or table side by side: ours, the paper's, and each against FedAvg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy
from cohort.results.at import rounds_of
from cohort.results.intervals import Sample, paired
from cohort.results.names import METRICS, Names
from cohort.results.paper import PaperValue
from cohort.results.paper_match import match_paper
from cohort.results.series import (
    NO_VALUE,
    cells_of,
    is_generated,
    label_columns,
    read_metric,
    value_per_cell,
)

if TYPE_CHECKING:
    import pandas as pd
    from pandas import DataFrame
else:
    pd = lazy("pandas")

USUAL = "fedavg"
FALLBACK = "test_accuracy"  # for figures of what is no metric by round


@dataclass(frozen=True)
class Line:
    """One strategy in one place: its values by seed and the paper's value, in the unit shown."""

    place: str
    strategy: str
    values: dict[str, float]
    planned: int
    diverged: int
    paper: PaperValue | None
    against: Sample | None

    @property
    def ours(self) -> Sample:
        """Our runs."""
        return Sample.of(list(self.values.values()))


@dataclass(frozen=True)
class Beside:
    """The lines of a figure or table, and what they show."""

    metric: str
    at: str
    lines: list[Line]
    generated: bool

    @property
    def title(self) -> str:
        """The metric with its unit, and which value of a run is shown."""
        rounds = "round " if self.at.isdigit() else "rounds " if rounds_of(self.at) else ""
        return f"{METRICS[self.metric].label}, {rounds}{self.at}"


def beside(spec: Mapping[str, Any], metrics_file: str) -> list[Beside]:
    """The strategies that a figure or table shows, in all of its places, for each measure of it."""
    metric, at = spec["metric"], str(spec.get("at", "last"))
    further = [text.partition(" ")[::2] for text in spec.get("also") or []]
    measures = [(metric, at), *((name, own or at) for name, own in further)]
    known = [one for one in measures if METRICS[one[0]].by == "round"] or [(FALLBACK, "last")]
    return [_beside(spec, metrics_file, *one) for one in known]


def _beside(spec: Mapping[str, Any], metrics_file: str, metric: str, at: str) -> Beside:
    frame = read_metric(metrics_file, metric)
    cells = value_per_cell(frame, metric, at)
    finished = cells["status"].isin(["done", "diverged"])
    cells["value"] = cells["value"].where(finished) * METRICS[metric].scale
    labels = [name for name in label_columns(frame) if name not in ("seed", "strategy")]
    varying = [name for name in labels if cells[name].nunique() > 1]
    papers = _papers(spec, metric, at, cells_of(frame), [*varying, "strategy"])
    lines = list(_lines(cells, varying, papers, Names.of(spec["look"])))
    return Beside(metric, at, lines, is_generated(frame))


def _lines(
    cells: DataFrame,
    varying: list[str],
    papers: Mapping[tuple[str, ...], PaperValue],
    names: Names,
) -> Iterator[Line]:
    """Parameters of a strategy (`selector.alpha`) are part of what it is, not of its place."""
    by_place = [name for name in varying if "." not in name]
    keys = [*varying, "strategy"]
    groups: dict[Any, DataFrame] = dict(list(cells.groupby(keys, sort=False)))
    usual = {
        tuple(group[by_place].iloc[0]): _by_seed(group)
        for key, group in groups.items()
        if key[-1] == USUAL
    }
    ordered = [*by_place, "strategy", *(name for name in varying if "." in name)]
    ranks = {name: names.ordered(name, cells[name]) for name in ordered}

    def rank(key: tuple[Any, ...]) -> list[int]:
        found = dict(zip(keys, key, strict=True))
        return [ranks[name].index(found[name]) for name in ordered]

    for key in sorted(groups, key=rank):
        group = groups[key]
        found = dict(zip(keys, map(str, key), strict=True))
        own = [name for name in varying if "." in name and found[name] != NO_VALUE]
        place = tuple(found[name] for name in by_place)
        values, base = _by_seed(group), usual.get(place)
        yield Line(
            place=", ".join(names.phrase(name, found[name]) for name in by_place),
            strategy=", ".join(names.phrase(name, found[name]) for name in ("strategy", *own)),
            values=values,
            planned=len(group),
            diverged=int(group["status"].eq("diverged").sum()),
            paper=papers.get(tuple(map(str, key))),
            against=None if base is None or key[-1] == USUAL else paired(values, base),
        )


def _by_seed(group: DataFrame) -> dict[str, float]:
    known = group.dropna(subset="value")
    return dict(zip(known["seed"], known["value"].astype(float), strict=True))


def _papers(
    spec: Mapping[str, Any], metric: str, at: str, cells: DataFrame, shown: list[str]
) -> dict[tuple[str, ...], PaperValue]:
    """The paper's value by the labels shown; of a curve, its last point."""
    if not spec.get("paper_values"):
        return {}
    matches = match_paper(
        spec["paper_values"],
        spec["paper"],
        metric,
        cells.to_dict("records"),
        shown,
        label_columns(cells),
        at="" if spec.get("kind") == "curves" else at,
    )
    return {tuple(match.labels.values()): match.values[-1] for match in matches if match.values}
