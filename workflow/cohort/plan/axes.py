"""Multiply out an experiment's axes, in the order in which the study is written."""

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
    groups = _groups(experiment)
    excluded = [as_lists(entry) for entry in experiment.get("exclude", [])]
    for entry in excluded:
        _check_excluded(entry, groups)
    for values in _product(groups):
        if not any(_is_among(values, entry) for entry in excluded):
            yield _without_null(values)
    for entry in experiment.get("include", []):
        yield from map(_without_null, _product(_with_included(groups, as_lists(entry))))


def axis_values(experiment: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each axis in the order in which the experiment first names them."""
    by_axis: dict[str, dict[Any, None]] = {}
    included = map(as_lists, experiment.get("include", []))
    for part in (experiment["axes"], *experiment.get("paired", []), *included):
        for key, values in part.items():
            ordered = by_axis.setdefault(key, {})
            ordered |= {value: None for value in values if value is not None}
    return {key: list(values) for key, values in by_axis.items()}


def as_lists(entry: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The entry with each single value as a list of one."""
    return {key: value if isinstance(value, list) else [value] for key, value in entry.items()}


def _unpaired_axis(key: str, values: Iterable[Any]) -> Group:
    """A group of one axis, which is not paired with others."""
    return (key,), [(value,) for value in values]


def _groups(experiment: Mapping[str, Any]) -> list[Group]:
    groups = [_unpaired_axis(key, values) for key, values in experiment["axes"].items()]
    groups += [_paired_axes(paired) for paired in experiment.get("paired", [])]
    names = [key for keys, _ in groups for key in keys]
    for key in names:
        if names.count(key) > 1:
            raise UserError(f"'{key}' is an axis twice, in axes and in paired")
    return groups


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
        yield dict(zip(names, itertools.chain.from_iterable(rows), strict=True))


def _without_null(values: Values) -> Values:
    return {key: value for key, value in values.items() if value is not None}


def _is_among(values: Values, entry: Mapping[str, list[Any]]) -> bool:
    return all(values.get(key) in allowed for key, allowed in entry.items())


def _with_included(groups: list[Group], entry: Mapping[str, list[Any]]) -> list[Group]:
    """The axes, with those that the entry names replaced by its values."""
    kept: list[Group] = []
    for keys, rows in groups:
        missing = [key for key in keys if key not in entry]
        if len(missing) == len(keys):
            kept.append((keys, rows))
        elif missing:
            raise UserError(
                f".include: an entry that gives one of {', '.join(keys)} must give them all, "
                "for they are paired"
            )
    return kept + [_unpaired_axis(key, values) for key, values in entry.items()]


def _check_excluded(entry: Mapping[str, list[Any]], groups: list[Group]) -> None:
    axes: dict[str, list[Any]] = {}
    for keys, rows in groups:
        for position, key in enumerate(keys):
            axes[key] = [row[position] for row in rows]
    for key, values in entry.items():
        if key not in axes:
            raise UserError(
                f".exclude names '{key}', which is not an axis here{suggest(key, axes)}"
            )
        for value in values:
            if value not in axes[key]:
                raise UserError(
                    f".exclude names {key} {value!r}, which is not on the axis"
                    f"{suggest(value, axes[key])}"
                )
