"""Match cells against entries such as `{strategy: fedavg, J: [J4, J8]}`; drop or change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cohort.core.errors import UserError
from cohort.plan.axes import Values, as_lists


def matches(cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Whether a cell has, for every key of the entry, its value or one of its list of values."""
    return all(
        cell.get(key) in allowed if isinstance(allowed, list) else cell.get(key) == allowed
        for key, allowed in entry.items()
    )


def without_matching(cells: list[Values], entries: Iterable[Mapping[str, Any]]) -> list[Values]:
    """The cells that no entry matches. Raise a UserError for an entry that matches no cell."""
    kept = cells
    for entry in entries:
        _check_used(entry, cells)
        kept = [cell for cell in kept if not matches(cell, entry)]
    return kept


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


def check_overrides(overrides: Iterable[Mapping[str, Any]], cells: list[Values]) -> None:
    """Raise a UserError for an override that matches no cell."""
    for position, override in enumerate(overrides):
        _check_used(override["given"], cells, f"overrides[{position}]: ")


def _check_used(entry: Mapping[str, Any], cells: Iterable[Values], prefix: str = "") -> None:
    if not any(matches(cell, entry) for cell in cells):
        listed = ", ".join(f"{key} {values}" for key, values in as_lists(entry).items())
        raise UserError(f"{prefix}no cell has {listed}")
