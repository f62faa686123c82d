"""Multiply out an experiment's axes in the order in which the study is written, and match cells
against entries such as `{strategy: fedavg, J: [J4, J8]}`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cohort.core.errors import UserError, suggest

Values = dict[str, Any]
Group = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Axes that move together: their keys, and the combinations of values that they take."""


def combinations(experiment: Mapping[str, Any]) -> Iterator[Values]:
    """Yield the values of each cell on the experiment's axes.

    They are the product of the axes and the paired groups without what `exclude` matches, followed
    by the cells of `include`. Where a paired list holds null, a cell does not have that axis.
    """
    groups = [_unpaired_axis(*axis) for axis in experiment["axes"].items()]
    groups += [_paired_axes(paired) for paired in experiment.get("paired", [])]
    names = [key for keys, _ in groups for key in keys]
    for key in names:
        if names.count(key) > 1:
            raise UserError(f"'{key}' is an axis twice, in axes and in paired")
    excluded = [as_lists(entry) for entry in experiment.get("exclude", [])]
    _check_excluded(excluded, groups)
    for values in _product(groups):
        if not any(matches(values, entry) for entry in excluded):
            yield values
    for entry in experiment.get("include", []):
        yield from _product(_with_included(groups, as_lists(entry)))


def axis_values(experiment: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis in the order in which the experiment first names them."""
    by_axis: dict[str, dict[Any, None]] = {}
    included = map(as_lists, experiment.get("include", []))
    for part in (experiment["axes"], *experiment.get("paired", []), *included):
        for key, values in part.items():
            by_axis.setdefault(key, {}).update(dict.fromkeys(values))
    for values in by_axis.values():
        values.pop(None, None)
    return {key: list(values) for key, values in by_axis.items()}


def as_lists(entry: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The entry with each single value as a list of one."""
    return {key: value if isinstance(value, list) else [value] for key, value in entry.items()}


def matches(cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether a cell has, for every key of the entry, its value or one of its list of values."""
    return all(
        cell.get(key) in allowed if isinstance(allowed, list) else cell.get(key) == allowed
        for key, allowed in entry.items()
    )


def check_matched(entry: Mapping[str, Any], cells: Iterable[Values], prefix: str = "") -> None:
    """Raise a UserError for an entry that matches no cell."""
    if not any(matches(cell, entry) for cell in cells):
        listed = ", ".join(f"{key} {values}" for key, values in as_lists(entry).items())
        raise UserError(f"{prefix}no cell has {listed}")


def overridden_values(
    settings: Values, own: Values, overrides: Iterable[Mapping[str, Any]]
) -> Values:
    """Merge a cell's values: its study's settings, then the overrides that match it, then its own.

    `own` holds its experiment's settings and its values on the axes. Of two overrides that set the
    same key, the later one wins.
    """
    values = settings | own
    changed = dict(settings)
    for override in overrides:
        if matches(values, override["given"]):
            changed |= override["settings"]
    return changed | own


def _unpaired_axis(key: str, values: Iterable[Any]) -> Group:
    return (key,), [(value,) for value in values]


def _paired_axes(paired: Mapping[str, list[Any]]) -> Group:
    if len({len(values) for values in paired.values()}) != 1:
        lengths = ", ".join(f"{key}: {len(values)}" for key, values in paired.items())
        raise UserError(f".paired: lists that move together must be equally long ({lengths})")
    rows = list(zip(*paired.values(), strict=True))
    for row in rows:
        if rows.count(row) > 1:
            twice = ", ".join(f"{key}: {value}" for key, value in zip(paired, row, strict=True))
            raise UserError(f".paired holds a combination twice ({twice})")
    return tuple(paired), rows


def _product(groups: list[Group]) -> Iterator[Values]:
    names = [key for keys, _ in groups for key in keys]
    for rows in itertools.product(*(rows for _, rows in groups)):
        values = zip(names, itertools.chain.from_iterable(rows), strict=True)
        yield {key: value for key, value in values if value is not None}


def _with_included(groups: list[Group], entry: Mapping[str, list[Any]]) -> list[Group]:
    """The axes, with those that the entry names replaced by its values."""
    others: list[Group] = []
    for keys, rows in groups:
        if not any(key in entry for key in keys):
            others.append((keys, rows))
        elif not all(key in entry for key in keys):
            raise UserError(
                f".include: an entry that gives one of {', '.join(keys)} must give them all, "
                "for they are paired"
            )
    return others + [_unpaired_axis(*axis) for axis in entry.items()]


def _check_excluded(entries: Iterable[Mapping[str, list[Any]]], groups: list[Group]) -> None:
    axes: dict[str, list[Any]] = {}
    for keys, rows in groups:
        axes |= dict(zip(keys, map(list, zip(*rows, strict=True)), strict=True))
    for key, values in (item for entry in entries for item in entry.items()):
        if key not in axes:
            raise UserError(
                f".exclude names '{key}', which is not an axis here{suggest(key, axes)}"
            )
        for value in values:
            if value not in axes[key]:
                near = suggest(value, axes[key])
                raise UserError(f".exclude names {key} {value!r}, which is not on the axis{near}")
