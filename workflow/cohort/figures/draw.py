"""Draws one figure into files that are the same bytes whenever the numbers are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.core.files import replacing
from cohort.figures.kind import Kind
from cohort.figures.look import STYLE, Look
from cohort.figures.sheet import Part, sheet
from cohort.metrics.paper_match import Beside, read_beside
from cohort.metrics.summary import GENERATED, cells_of, is_generated, label_columns, read_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

NO_DATES: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}


def draw(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Draw a resolved figure from an experiment's metrics, once for each output; the ending (.png, .pdf, .svg) says the format."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        figure = make_figure(spec, metrics_file)
        for output in outputs:
            metadata = NO_DATES[Path(output).suffix] | {"Title": spec.get("title", "")}
            with replacing(output) as temporary:
                figure.savefig(temporary, metadata=metadata)


def make_figure(spec: Mapping[str, Any], metrics_file: str | Path) -> Figure:
    """The figure that is saved, drawn with matplotlib's present settings."""
    kind = kind_of(spec)
    kind.check()
    parts = [Part(part, read_metric(metrics_file, *part.metrics())) for part in kind.parts()]
    if is_generated(parts[0].metrics):
        return sheet(parts, Look.of(spec["look"]), [GENERATED])
    parts = [replace(part, beside=_beside(part.kind, spec, part.metrics)) for part in parts]
    return sheet(
        parts, Look.of(spec["look"]), _remarks(spec, [one for part in parts for one in part.beside])
    )


def _beside(kind: Kind, spec: Mapping[str, Any], metrics: DataFrame) -> list[Beside]:
    """What the paper says; at a cheaper scale only as far as our runs go, whose axis would otherwise be lost in the paper's."""
    if not spec.get("paper"):
        return []
    cells = cells_of(metrics)
    at = getattr(kind, "at", "")
    found = read_beside(
        spec["paper_values"],
        spec["paper"],
        kind.metric,
        cells.to_dict("records"),
        kind.shown(),
        label_columns(cells),
        at=at,
    )
    rounds = metrics["round"].dropna()
    if at or spec.get("scale", "full") == "full" or not len(rounds):
        return found
    last = rounds.max()
    return [
        Beside(one.labels, [value for value in one.values if (value.round or 0) <= last])
        for one in found
    ]


def _remarks(spec: Mapping[str, Any], beside: list[Beside]) -> list[str]:
    values = [value for one in beside for value in one.values]
    doubts = dict.fromkeys(value.doubtful for value in values if value.doubtful)
    scale = spec.get("scale", "full")
    cheaper = [f"scale {scale}: a cheaper version of the study"] if scale != "full" else []
    return cheaper + (
        [f"some of the paper's values are doubtful: {'; '.join(doubts)}"] if doubts else []
    )


def kind_of(spec: Mapping[str, Any]) -> Kind:
    """The kind of figure with the fields that the spec gives it."""
    from cohort.figures import KINDS  # the catalog imports this module

    kind = KINDS[spec["kind"]]
    return kind(
        **{field.name: spec[field.name] for field in dataclasses.fields(kind) if field.name in spec}
    )
