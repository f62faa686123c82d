"""Draws one figure; the same numbers always give the same bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from pandas import DataFrame

from cohort.core.files import atomic_write
from cohort.core.sealed_json import write_sealed
from cohort.results.comparison import Comparison, compare
from cohort.results.figures import KINDS
from cohort.results.figures.kind import Kind
from cohort.results.figures.sheet import Part, sheet
from cohort.results.figures.style import Style, apply_theme
from cohort.results.paper import doubts
from cohort.results.paper_match import PaperMatch
from cohort.results.series import (
    FULL,
    GENERATED,
    cells_of,
    is_generated,
    label_columns,
    read_metric,
)

NARROW = ".narrow"
NO_DATES = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def draw(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Draw the figure of `spec` to each output; its suffix sets the format: .png, .pdf, .svg,
    .narrow.png for a phone, or .json for the comparison of its runs."""
    with mpl.rc_context():
        apply_theme()
        figure = make_figure(spec, metrics_file)
        for output in outputs:
            if Path(output).suffix == ".json":
                write_sealed(output, compare_figure(spec, metrics_file).as_json(), sync=False)
                continue
            is_narrow = Path(output).suffixes[0] == NARROW
            drawn = make_figure(spec, metrics_file, is_narrow=True) if is_narrow else figure
            metadata = NO_DATES[Path(output).suffix] | {"Title": spec.get("title", "")}
            with atomic_write(output) as temporary:
                drawn.savefig(temporary, metadata=metadata)


def make_figure(
    spec: Mapping[str, Any], metrics_file: str | Path, *, is_narrow: bool = False
) -> Figure:
    """Draw the figure of `spec` with matplotlib's current settings; the panels of one that
    `is_narrow` lie one below the other."""
    kind = kind_of(spec)
    style = Style.of(spec["look"])
    parts, remarks = [], [GENERATED]
    for part in kind.by_metric():
        metrics = part.select(read_metric(metrics_file, *part.metrics()))
        paper = [] if is_generated(metrics) else _matches(part, spec, metrics)
        parts.append(Part(part, metrics, paper))
    if not is_generated(parts[0].metrics):
        remarks = _remarks(spec, [match for part in parts for match in part.paper])
    return sheet(parts, style, remarks, is_narrow=is_narrow)


def compare_figure(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a figure shows, described in words where it shows no means."""
    kind = kind_of(spec)
    comparison = compare(kind.measures(), spec, metrics_file)
    if comparison.generated or not kind.is_across:
        return comparison
    metrics = read_metric(metrics_file, *kind.metrics())
    return dataclasses.replace(
        comparison, description=kind.describe(metrics, Style.of(spec["look"]))
    )


def kind_of(spec: Mapping[str, Any]) -> Kind:
    """The kind of figure that a spec describes, with its fields."""
    return KINDS[spec["kind"]].from_spec(spec)


def _matches(kind: Kind, spec: Mapping[str, Any], metrics: DataFrame) -> list[PaperMatch]:
    """The paper's values to draw; at a cheaper scale only up to our last round.

    Our short curves would be lost on an axis as long as the paper's.
    """
    if not spec.get("paper"):
        return []
    measure = kind.measures()[0]
    cells = cells_of(metrics).to_dict("records")
    matches = measure.matches(spec["paper_values"], cells, label_columns(metrics))
    rounds = metrics["round"].dropna()
    if not measure.curves or spec.get("scale", FULL) == FULL or not len(rounds):
        return matches
    last = rounds.max()
    return [_until(match, last) for match in matches]


def _until(match: PaperMatch, last: int) -> PaperMatch:
    return PaperMatch(match.labels, [value for value in match.values if (value.round or 0) <= last])


def _remarks(spec: Mapping[str, Any], matches: Sequence[PaperMatch]) -> list[str]:
    scale = spec.get("scale", FULL)
    remarks = [f"scale {scale}: a cheaper version of the study"] if scale != FULL else []
    values = [value for match in matches for value in match.values]
    reasons = doubts(value.doubtful for value in values)
    if reasons:
        remarks.append(f"some of the paper's values are doubtful: {reasons}")
    return remarks
