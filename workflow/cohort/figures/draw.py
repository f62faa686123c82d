"""Draws one figure into files that are the same bytes whenever the numbers are the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cohort.figures.kind import Kind
from cohort.figures.look import STYLE, Look
from cohort.figures.sheet import sheet
from cohort.files import replacing
from cohort.records.summary import read_metric

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_DATES: dict[str, dict[str, None]] = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


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
    metrics = read_metric(metrics_file, kind.metric)
    return sheet(kind, metrics, Look.of(spec["look"]))


def kind_of(spec: Mapping[str, Any]) -> Kind:
    """The kind of figure with the fields that the spec gives it."""
    from cohort.figures import KINDS  # the catalog imports this module

    kind = KINDS[spec["kind"]]
    return kind(**{field.name: spec[field.name] for field in dataclasses.fields(kind) if field.name in spec})
