"""Draws one figure; the same numbers always give the same bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from pandas import DataFrame

from cohort.core.files import replacing
from cohort.figures import KINDS
from cohort.figures.kind import Kind
from cohort.figures.sheet import Part, sheet
from cohort.figures.style import Style, apply_theme
from cohort.metrics.paper_match import PaperMatch, match_paper
from cohort.metrics.summary import GENERATED, cells_of, is_generated, label_columns, read_metric

NO_DATES: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}


def draw(spec: Mapping[str, Any], metrics_file: str | Path, outputs: Sequence[str | Path]) -> None:
    """Draw the figure of `spec` to each output; its suffix (.png, .pdf, .svg) sets the format."""
    with mpl.rc_context():
        apply_theme()
        figure = make_figure(spec, metrics_file)
        for output in outputs:
            metadata = NO_DATES[Path(output).suffix] | {"Title": spec.get("title", "")}
            with replacing(output) as temporary:
                figure.savefig(temporary, metadata=metadata)


def make_figure(spec: Mapping[str, Any], metrics_file: str | Path) -> Figure:
    """Draw the figure of `spec` with matplotlib's current settings."""
    kind = kind_of(spec)
    kind.check()
    style = Style.of(spec["look"])
    parts = [
        Part(part, part.select(read_metric(metrics_file, *part.metrics()))) for part in kind.parts()
    ]
    if is_generated(parts[0].metrics):
        return sheet(parts, style, [GENERATED])
    parts = [
        dataclasses.replace(part, paper=_matches(part.kind, spec, part.metrics)) for part in parts
    ]
    return sheet(parts, style, _remarks(spec, [match for part in parts for match in part.paper]))


def kind_of(spec: Mapping[str, Any]) -> Kind:
    """Build the kind of figure that `spec` names from the keys that are its parameters."""
    kind = KINDS[spec["kind"]]
    fields = (field.name for field in dataclasses.fields(kind))
    return kind(**{name: spec[name] for name in fields if name in spec})


def _matches(kind: Kind, spec: Mapping[str, Any], metrics: DataFrame) -> list[PaperMatch]:
    """The paper's values to draw; at a cheaper scale only up to our last round.

    Our short curves would be lost on an axis as long as the paper's.
    """
    if not spec.get("paper"):
        return []
    cells = cells_of(metrics)
    at = str(getattr(kind, "at", ""))
    matches = match_paper(
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
        return matches
    last = rounds.max()
    return [_until(match, last) for match in matches]


def _until(match: PaperMatch, last: int) -> PaperMatch:
    return PaperMatch(match.labels, [one for one in match.values if (one.round or 0) <= last])


def _remarks(spec: Mapping[str, Any], matches: Sequence[PaperMatch]) -> list[str]:
    scale = spec.get("scale", "full")
    remarks = [f"scale {scale}: a cheaper version of the study"] if scale != "full" else []
    values = [value for match in matches for value in match.values]
    doubts = dict.fromkeys(value.doubtful for value in values if value.doubtful)
    if doubts:
        remarks.append(f"some of the paper's values are doubtful: {'; '.join(doubts)}")
    return remarks
