"""An experiment's axes, multiplied out: pure and in order."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError, suggest

Values = dict[str, Any]


def combinations(experiment: Mapping[str, Any], where: str) -> Iterator[Values]:
    """The value of every axis for every cell: the product of the axes and of the paired groups, without `exclude`, then `include`.

    A paired list may hold null: there the cell does not have that axis.
    """
    groups = _groups(experiment, where)
    excluded = [_lists(entry) for entry in experiment.get("exclude", [])]
    for entry in excluded:
        _check_exclude(entry, groups, where)
    for combination in _product(groups):
        if not any(_matches(combination, entry) for entry in excluded):
            yield _given(combination)
    for entry in experiment.get("include", []):
        yield from map(_given, _product(_include(groups, _lists(entry), where)))


def axis_values(experiment: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Every axis with its values in the order in which the study names them."""
    found: dict[str, list[Any]] = {}
    for part in (
        experiment["axes"],
        *experiment.get("paired", []),
        *map(_lists, experiment.get("include", [])),
    ):
        for key, values in part.items():
            found[key] = list(
                dict.fromkeys(
                    [*found.get(key, []), *(value for value in values if value is not None)]
                )
            )
    return found


def overridden(settings: Values, own: Values, overrides: Iterable[Mapping[str, Any]]) -> Values:
    """A cell's values: a study's settings, then what its overrides say of such cells (the later ones first), then the cell's `own`."""
    values = settings | own
    said = {
        key: value
        for entry in overrides
        if fits(values, entry["given"])
        for key, value in entry["settings"].items()
    }
    return settings | said | own


def check_overrides(
    overrides: Iterable[Mapping[str, Any]], cells: Iterable[Values], file: Path
) -> None:
    """Refuse one that is about no cell of a study."""
    cells = list(cells)
    for place, entry in enumerate(overrides):
        if not any(fits(values, entry["given"]) for values in cells):
            raise UserError(
                f"{file}: overrides[{place}]: no cell has {_phrase(_lists(entry['given']))}"
            )


def fits(values: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether these values are among those that an entry names, one or a list for each key."""
    return _matches(values, _lists(entry))


def left_over(cells: list[Values], without: list[Values], where: str) -> list[Values]:
    """The cells that no entry matches; each entry must match some."""
    kept = cells
    for entry in map(_lists, without):
        matched = [cell for cell in cells if _matches(cell, entry)]
        if not matched:
            raise UserError(f"{where}: no cell has {_phrase(entry)}")
        kept = [cell for cell in kept if not _matches(cell, entry)]
    return kept


Group = tuple[tuple[str, ...], list[tuple[Any, ...]]]


def _groups(experiment: Mapping[str, Any], where: str) -> list[Group]:
    groups: list[Group] = [
        ((key,), [(value,) for value in values]) for key, values in experiment["axes"].items()
    ]
    for paired in experiment.get("paired", []):
        if len({len(values) for values in paired.values()}) != 1:
            lengths = ", ".join(f"{key}: {len(values)}" for key, values in paired.items())
            raise UserError(
                f"{where}.paired: lists that move together must be equally long ({lengths})"
            )
        groups.append((tuple(paired), list(zip(*paired.values(), strict=True))))
        for values in groups[-1][1]:
            if groups[-1][1].count(values) > 1:
                twice = ", ".join(
                    f"{key}: {value}" for key, value in zip(paired, values, strict=True)
                )
                raise UserError(f"{where}.paired holds a combination twice ({twice})")
    names = [key for keys, _ in groups for key in keys]
    for key in names:
        if names.count(key) > 1:
            raise UserError(f"{where}: '{key}' is an axis twice, in axes and in paired")
    return groups


def _product(groups: list[Group]) -> Iterator[Values]:
    names = [key for keys, _ in groups for key in keys]
    for chosen in itertools.product(*(values for _, values in groups)):
        yield dict(zip(names, itertools.chain.from_iterable(chosen), strict=True))


def _given(combination: Values) -> Values:
    return {key: value for key, value in combination.items() if value is not None}


def _include(groups: list[Group], entry: Mapping[str, list[Any]], where: str) -> list[Group]:
    """The axes, with those that the entry names replaced by its values."""
    kept: list[Group] = []
    for keys, values in groups:
        missing = [key for key in keys if key not in entry]
        if len(missing) == len(keys):
            kept.append((keys, values))
        elif missing:
            raise UserError(
                f"{where}.include: an entry that gives one of {', '.join(keys)} must give them all, for they are paired"
            )
    return kept + [((key,), [(value,) for value in values]) for key, values in entry.items()]


def _check_exclude(entry: Mapping[str, list[Any]], groups: list[Group], where: str) -> None:
    axes = {
        key: [row[position] for row in values]
        for keys, values in groups
        for position, key in enumerate(keys)
    }
    for key, values in entry.items():
        if key not in axes:
            raise UserError(
                f"{where}.exclude names '{key}', which is no axis here{suggest(key, axes)}"
            )
        for value in values:
            if value not in axes[key]:
                raise UserError(
                    f"{where}.exclude names {key} {value!r}, which is not on the axis{suggest(value, axes[key])}"
                )


def _phrase(entry: Mapping[str, list[Any]]) -> str:
    return ", ".join(f"{key} {value}" for key, value in entry.items())


def _matches(values: Mapping[str, Any], entry: Mapping[str, list[Any]]) -> bool:
    return all(values.get(key) in allowed for key, allowed in entry.items())


def _lists(entry: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {key: value if isinstance(value, list) else [value] for key, value in entry.items()}
