"""Matches a paper's values with our results by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cohort.core.errors import UserError
from cohort.results.paper import FOLDER, SOURCES, PaperValue
from cohort.results.series import NO_VALUE, label_text

Cell = Mapping[Any, Any]


@dataclass(frozen=True)
class PaperMatch:
    """The paper's values for a result, which is identified by its labels."""

    labels: dict[str, str]
    values: list[PaperValue]


def match_values(
    values: list[PaperValue],
    cells: Iterable[Cell],
    shown: Iterable[str],
    labels: Iterable[str],
    *,
    at: str = "",
) -> list[PaperMatch]:
    """Group the cells by the labels `shown` and find the values that belong to each group.

    A group gets one value where `at` is given, otherwise a curve, sorted by round. A value fits a
    group if no label that all of the group's cells share contradicts it, shown or not: an
    experiment with one model does not match the values of other models. Of the values that fit,
    those of the most trusted source count. Raise UserError where two values fit.
    """
    shown, labels = tuple(shown), tuple(labels)
    by_labels: dict[tuple[tuple[str, str], ...], list[PaperValue]] = {}  # those of a curve together
    for value in values:
        if not at or value.at in ("", at):
            by_labels.setdefault(tuple(value.labels.items()), []).append(value)
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(label_text(cell.get(name)) for name in shown), []).append(cell)
    matches = []
    for key, group in groups.items():
        shared = _shared_labels(group, labels)
        fitting = [value for same in by_labels.values() if same[0].fits(shared) for value in same]
        best = min((SOURCES.index(value.source) for value in fitting), default=0)
        fitting = [value for value in fitting if value.source == SOURCES[best]]
        candidates = [[value] for value in fitting] if at else _curves(fitting)
        named = dict(zip(shown, key, strict=True))
        if len(candidates) > 1:
            texts = ", ".join(f"{name} {value}" for name, value in named.items())
            first, second = (_described(values[0], named) for values in candidates[:2])
            raise UserError(
                f"paper has two values for {texts}: {first} and {second}; name one item, keep them "
                f"apart by an axis, or add a column to the file in {FOLDER} with the label that "
                "tells them apart"
            )
        matches.append(PaperMatch(named, candidates[0] if candidates else []))
    return matches


def _shared_labels(group: list[Cell], labels: Iterable[str]) -> dict[str, str]:
    """The labels that have one and the same value in all cells of a group."""
    shared = {}
    for name in labels:
        text, *others = {label_text(cell.get(name)) for cell in group}
        if not others and text != NO_VALUE:
            shared[name] = text
    return shared


def _curves(values: list[PaperValue]) -> list[list[PaperValue]]:
    curves: dict[Any, list[PaperValue]] = {}
    for value in values:
        if value.round is not None:
            key = (value.item, tuple(value.labels.items()), value.other)
            curves.setdefault(key, []).append(value)
    return [sorted(curve, key=lambda value: value.round or 0) for curve in curves.values()]


def _described(value: PaperValue, named: Mapping[str, str]) -> str:
    labels = [f"{name} {text}" for name, text in value.labels.items() if name not in named]
    return f"{value.value:g} ({'; '.join(filter(None, [value.item, *labels, value.other]))})"
