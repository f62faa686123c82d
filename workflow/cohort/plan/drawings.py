"""Figures and tables of a study, checked against the cells of their experiment before any of them is trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.figures import KINDS, Kind
from cohort.metrics.paper import paper_file
from cohort.metrics.paper_match import read_beside
from cohort.metrics.summary import label_text
from cohort.plan.axes import Values
from cohort.plan.sizes import check_sizes
from cohort.tables.sizes import needs_no_runs
from cohort.tables.spec import Table

FRAME = ("kind", "experiment", "title", "caption")


Labels = tuple[str, ...]


def facets(
    spec: Values, axes: Mapping[str, list[Any]], cells: Iterable[Values], where: str, study: str
) -> list[Labels]:
    """The labels that make the panels of a figure, and its hues; for a table, which may have holes, what it subtracts along."""
    if needs_no_runs(spec):
        check_sizes(spec, where, study)
        return []
    values = {key: value for key, value in spec.items() if key not in FRAME}
    drawn: Kind | Table = KINDS[spec["kind"]](**values) if "kind" in spec else Table(**values)
    try:
        drawn.check()
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    for column in drawn.shown():
        if column not in axes:
            raise UserError(
                f"{where} names '{column}', which is no axis of its experiment{suggest(column, axes)}"
            )
    _check_named(drawn, axes, where)
    told_apart = {
        axis: values
        for axis, values in axes.items()
        if not (isinstance(drawn, Kind) and drawn.ignores(axis))
    }
    _check_averages(drawn.shown(), told_apart, cells, where)
    _check_paper(drawn, spec, axes, cells, where, study)
    if isinstance(drawn, Table):
        return [tuple(drawn.minus or ())]
    return [drawn.panels(), drawn.facets()[len(drawn.panels()) :]]


def check_titles(
    titles: Mapping[str, Mapping[str, str]],
    experiments: Sequence[Mapping[str, list[Any]]],
    file: Path,
) -> None:
    """Refuse a title for a value that no experiment has."""
    known = {
        label: {label_text(value) for axes in experiments for value in axes.get(label, [])}
        for label in titles
    }
    for label, values in titles.items():
        for value in values:
            if value not in known[label]:
                raise UserError(
                    f"{file}: titles.{label} names '{value}', which no cell has{suggest(value, sorted(known[label]))}"
                )


def _check_named(drawn: Kind | Table, axes: Mapping[str, list[Any]], where: str) -> None:
    """Refuse a value that its label does not have, and labels to average over that are no axes or kept apart."""
    for label, values in drawn.named().items():
        known = [label_text(value) for value in axes[label]]
        for value in values:
            if value not in known:
                raise UserError(
                    f"{where} names '{value}', which {label} does not have in its experiment{suggest(value, known)}"
                )
    for label in drawn.averaged() if isinstance(drawn, Kind) else ():
        if label not in axes:
            raise UserError(
                f"{where}.pooled names '{label}', which is no axis of its experiment{suggest(label, axes)}"
            )
        if label in drawn.shown():
            raise UserError(
                f"{where}.pooled names '{label}', but keeps it apart as a panel, hue or x; it can do one of them only"
            )


def _check_averages(
    shown: tuple[str, ...], axes: Mapping[str, list[Any]], cells: Iterable[Values], where: str
) -> None:
    """Refuse to average runs that differ in more than their seed."""
    others = [
        axis for axis, values in axes.items() if len(values) > 1 and axis not in (*shown, "seed")
    ]
    seen: dict[tuple[Any, ...], Values] = {}
    for cell in cells:
        first = seen.setdefault(tuple(cell.get(column) for column in shown), cell)
        for axis in others:
            if cell.get(axis) != first.get(axis):
                mixed = f"{axis} {first.get(axis)} and {cell.get(axis)}"
                raise UserError(
                    f"{where} would average runs with {mixed} as if they were seeds; "
                    f"keep them apart by {axis} (panels, hue, x or rows), or show an experiment that has one of them"
                )


def _check_paper(
    drawn: Kind | Table,
    spec: Mapping[str, Any],
    axes: Mapping[str, list[Any]],
    cells: Iterable[Values],
    where: str,
    study: str,
) -> None:
    """Refuse an item of the paper that is not known, that fits nothing shown, or that says two things of one result."""
    file = paper_file(study, spec)
    if file is None:
        return
    at = getattr(drawn, "at", "")
    try:
        measures: Sequence[Kind | Table] = drawn.measures() if isinstance(drawn, Table) else [drawn]
        metrics = [one.measured() if isinstance(one, Table) else one.metric for one in measures]
        found, *_ = [
            read_beside(
                file, spec["paper"], metric, cells, one.shown(), axes, at=getattr(one, "at", "")
            )
            for one, metric in zip(measures, metrics, strict=True)
        ]
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if not any(one.values for one in found):
        wanted = f"{metrics[0]}, at {at}" if at else metrics[0]
        raise UserError(
            f"{where}: paper is '{spec['paper']}', but no value of it in {file} fits a result shown here ({wanted}); compare their labels"
        )
