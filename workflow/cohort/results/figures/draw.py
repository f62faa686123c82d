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
from cohort.results.figures import KINDS, Kind
from cohort.results.figures.sheet import sheet
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

NO_DATES = {".png": {"Software": None}, ".pdf": {"CreationDate": None}}


def draw(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Draw the figure of `spec` to each output; its suffix sets the format: .png, .pdf,
    or .json for the comparison of its runs."""
    with mpl.rc_context():
        apply_theme()
        figure = make_figure(spec, metrics_file)
        for output in map(Path, outputs):
            if output.suffix == ".json":
                write_sealed(output, compare_figure(spec, metrics_file).as_json(), sync=False)
                continue
            metadata = NO_DATES[output.suffix] | {"Title": spec.get("title", "")}
            with atomic_write(output) as temporary:
                figure.savefig(temporary, metadata=metadata)


def make_figure(spec: Mapping[str, Any], metrics_file: str | Path) -> Figure:
    """Draw the figure of `spec` with matplotlib's current settings."""
    parts = []
    for kind in KINDS[spec["kind"]].from_spec(spec).by_metric():
        metrics = kind.select(read_metric(metrics_file, *kind.metrics()))
        parts.append((kind, metrics, _paper_matches(kind, spec, metrics)))
    scale = spec.get("scale", FULL)
    remarks = [f"scale {scale}: a cheaper version of the study"] if scale != FULL else []
    values = [value for *_, matches in parts for match in matches for value in match.values]
    if reasons := doubts(value.doubtful for value in values):
        remarks.append(f"some of the paper's values are doubtful: {reasons}")
    if is_generated(parts[0][1]):
        remarks = [GENERATED]
    return sheet(parts, Style.of(spec["look"]), remarks)


def compare_figure(spec: Mapping[str, Any], metrics_file: str | Path) -> Comparison:
    """Compare the runs that a figure shows, described in words where it shows no means."""
    kind = KINDS[spec["kind"]].from_spec(spec)
    comparison = compare(kind.measures(), spec, metrics_file)
    if comparison.generated or not kind.is_across:
        return comparison
    metrics = read_metric(metrics_file, *kind.metrics())
    description = kind.describe(metrics, Style.of(spec["look"]))
    return dataclasses.replace(comparison, description=description)


def _paper_matches(kind: Kind, spec: Mapping[str, Any], metrics: DataFrame) -> list[PaperMatch]:
    """The paper's values to draw; at a cheaper scale only up to our last round.

    Our short curves would be lost on an axis as long as the paper's.
    """
    if not spec.get("paper") or is_generated(metrics):
        return []
    measure = kind.measures()[0]
    cells = cells_of(metrics).to_dict("records")
    matches = measure.matches(spec["paper_values"], cells, label_columns(metrics))
    rounds = metrics["round"].dropna()
    if measure.curves and spec.get("scale", FULL) != FULL and len(rounds):
        for match in matches:
            match.values[:] = [
                value for value in match.values if (value.round or 0) <= rounds.max()
            ]
    return matches
