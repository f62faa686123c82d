"""Checks the figures and tables of a study against their experiments before anything is trained."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.plan.axes import Values
from cohort.results.at import check_at
from cohort.results.figures import KINDS, Kind
from cohort.results.measure import Item
from cohort.results.paper import paper_file
from cohort.results.series import label_text
from cohort.results.tables.spec import Leaderboard, Table

Labels = tuple[str, ...]
Matrix = tuple[Mapping[str, list[Any]], Sequence[Values]]
"""The axes of an experiment and its cells."""


def checked_facets(
    spec: Values, axes: Mapping[str, list[Any]], cells: Iterable[Values], study: str
) -> list[Labels]:
    """Check a figure or table and return the groups of labels that a thinned scale must cover.

    For a figure they are the labels of its panels and that of its hue, for a table, which may have
    gaps, the label along which it subtracts.
    """
    item = _kind_of(spec).from_spec(spec)
    item.check()
    for label in (*item.shown(), *item.named()):
        if label not in axes:
            raise UserError(
                f" names '{label}', which is not an axis of its experiment{suggest(label, axes)}"
            )
    _check_values(item, axes)
    item.check_cells(axes, cells)
    if isinstance(item, Kind):
        if item.limits and item.limits[0] >= item.limits[1]:
            raise UserError(f".limits is {item.limits}: the lowest value comes first")
        _check_pooled(item, axes)
    averaged = {axis: values for axis, values in axes.items() if not item.ignores(axis)}
    _check_averages(item.shown(), averaged, cells)
    _check_rounds(item, cells)
    _check_paper(item, spec, axes, cells, study)
    if isinstance(item, Table):
        return [tuple(item.minus or ())]
    if not isinstance(item, Kind):
        return [item.shown()]
    return [item.panels(), item.facets()[len(item.panels()) :]]


def checked_key_figure(text: Mapping[str, Any], figures: Mapping[str, Values]) -> str:
    """The name of the figure that opens a study's page; empty if the study names none. Raise
    UserError if it is not a figure of the study."""
    name: str = text.get("key_figure", "")
    if name and name not in figures:
        raise UserError(f"key_figure is '{name}', which is not a figure{suggest(name, figures)}")
    return name


def checked_findings(
    text: Mapping[str, Any],
    tables: Mapping[str, Values],
    axes: Mapping[str, Mapping[str, list[Any]]],
) -> list[Values]:
    """The findings of a study. Raise UserError for one that rests on a table, a claim, or a value
    of the axes of its experiment that the study does not have."""
    findings: list[Values] = text.get("findings", [])
    items = {**tables, **text.get("claims", {})}
    for number, finding in enumerate(findings):
        for reference in finding["rests_on"]:
            name, *values, _ = reference.split(", ")
            where = f"findings[{number}].rests_on names"
            if name not in items:
                raise UserError(
                    f"{where} '{name}', which is neither a table nor a claim{suggest(name, items)}"
                )
            spec = items[name]
            measures = [spec.get("metric", ""), spec.get("at", "last"), *spec.get("also", ())]
            known = set(" ".join(map(str, measures)).split())
            known |= {
                label_text(value) for axis in axes[spec["experiment"]].values() for value in axis
            }
            for value in values:
                if value not in known:
                    allowed = suggest(value, sorted(known))
                    raise UserError(f"{where} '{value}', which {name} does not show{allowed}")
    return findings


def _kind_of(spec: Values) -> type[Item]:
    """The class of a figure's, or a table's, kind."""
    kind = spec.get("kind")
    return Table if kind is None else Leaderboard if kind == Leaderboard.name else KINDS[kind]


def check_titles(titles: Mapping[str, Mapping[str, str]], experiments: Sequence[Matrix]) -> None:
    """Reject a title for a label value that no experiment has."""
    for label, values in titles.items():
        existing = {label_text(value) for axes, _ in experiments for value in axes.get(label, [])}
        for value in values:
            if value not in existing:
                raise UserError(
                    f"titles.{label} names '{value}', which no cell has"
                    f"{suggest(value, sorted(existing))}"
                )


def check_distinct(label: str, titles: Mapping[str, str], experiments: Sequence[Matrix]) -> None:
    """Reject one title for two values of a label in otherwise equal cells of an experiment."""
    for axes, cells in experiments:
        values = [label_text(value) for value in axes.get(label, [])]
        counts = Counter(titles.get(value, value) for value in values)
        other_labels = [other for other in axes if other != label]
        seen: dict[tuple[Any, ...], str] = {}
        for cell in cells if counts.total() > len(counts) else ():
            value = label_text(cell.get(label))
            title = titles.get(value, value)
            key = (title, *(label_text(cell.get(other)) for other in other_labels))
            if seen.setdefault(key, value) != value:
                raise UserError(
                    f"{label} '{seen[key]}' and '{value}' have one title, '{title}'; "
                    f"give one of them another under titles.{label}"
                )


def _check_values(item: Item, axes: Mapping[str, list[Any]]) -> None:
    """Reject a label value that the item names, but that its experiment does not have."""
    for label, values in item.named().items():
        existing = [label_text(value) for value in axes[label]]
        for value in values:
            if value not in existing:
                raise UserError(
                    f" names '{value}', which {label} does not have in its experiment"
                    f"{suggest(value, existing)}"
                )


def _check_pooled(kind: Kind, axes: Mapping[str, list[Any]]) -> None:
    """Reject to pool a label that is not an axis, or that the figure shows."""
    for label in kind.averaged():
        if label not in axes:
            raise UserError(
                f".pooled names '{label}', which is not an axis of its experiment"
                f"{suggest(label, axes)}"
            )
        if label in kind.shown():
            raise UserError(
                f".pooled names '{label}', but keeps it apart as a panel, hue or x; "
                "it can do one of them only"
            )


def _check_averages(
    shown: tuple[str, ...], axes: Mapping[str, list[Any]], cells: Iterable[Values]
) -> None:
    """Reject to average runs that differ in more than their seed."""
    free = [
        axis for axis, values in axes.items() if len(values) > 1 and axis not in (*shown, "seed")
    ]
    seen: dict[tuple[Any, ...], Values] = {}
    for cell in cells:
        first = seen.setdefault(tuple(cell.get(label) for label in shown), cell)
        for axis in free:
            if cell.get(axis) != first.get(axis):
                raise UserError(
                    f" would average runs with {axis} {first.get(axis)} and "
                    f"{cell.get(axis)} as if they were seeds; keep them apart by {axis} (panels, "
                    "hue, x or rows), or show an experiment that has one of them"
                )


def _check_rounds(item: Item, cells: Iterable[Values]) -> None:
    """Reject a round or a range of rounds that the runs do not reach."""
    end = min((cell["rounds"] for cell in cells if "rounds" in cell), default=0)
    for measure in item.measures():
        check_at(measure.at, end or sys.maxsize, "runs shown here")


def _check_paper(
    item: Item,
    spec: Mapping[str, Any],
    axes: Mapping[str, list[Any]],
    cells: Iterable[Values],
    study: str,
) -> None:
    """Reject a paper's item that is unknown, fits nothing shown, or has two values for a result."""
    file = paper_file(study, spec)
    if file is None:
        return
    measures = item.measures()
    matches, *_ = [measure.matches(file, cells, axes) for measure in measures]
    if not any(match.values for match in matches):
        metric, at = measures[0].shown_metric, measures[0].at
        wanted = metric if measures[0].curves else f"{metric}, at {at}"
        raise UserError(
            f"paper is '{spec['paper']}', but no value of it in {file} fits a result "
            f"shown here ({wanted}); compare their labels"
        )
