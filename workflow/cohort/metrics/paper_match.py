"""Which of a paper's values belong beside which results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.core.errors import UserError
from cohort.metrics.paper import FOLDER, SOURCES, Labels, PaperValue, read_paper
from cohort.metrics.summary import NO_VALUE, label_text

Cell = Mapping[Any, Any]


@dataclass(frozen=True)
class Beside:
    """Results that are shown as one, by the labels that tell them from the others, and the paper's values for them."""

    labels: dict[str, str]
    values: list[PaperValue]


def read_beside(
    file: str | Path,
    item: str,
    metric: str,
    cells: Iterable[Cell],
    shown: Iterable[str],
    labels: Iterable[str],
    *,
    at: str = "",
) -> list[Beside]:
    """What an item of the paper says of each group of cells that is shown as one."""
    return beside(read_paper(file, item, metric), cells, shown, labels, at=at)


def beside(
    values: list[PaperValue],
    cells: Iterable[Cell],
    shown: Iterable[str],
    labels: Iterable[str],
    *,
    at: str = "",
) -> list[Beside]:
    """Which of these values belong to each group of cells that is shown as one: one value where `at` is given, else a curve.

    A group has the labels that all of its cells share, not only those that are shown: where an experiment has one model, the values of
    other models do not fit.
    """
    shown, labels = tuple(shown), tuple(labels)
    if at:
        values = [value for value in values if value.at in ("", at)]
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(_text(cell.get(name)) for name in shown), []).append(cell)
    found = []
    for key, group in groups.items():
        shared = _shared(group, labels)
        fitting = _first_source([value for value in values if value.fits(shared)])
        named = dict(zip(shown, key, strict=True))
        found.append(
            Beside(named, _one([[value] for value in fitting] if at else _curves(fitting), named))
        )
    return found


def _shared(group: list[Cell], labels: Iterable[str]) -> dict[str, str]:
    """The labels that all cells of a group have, where they have any."""
    texts = {name: {_text(cell.get(name)) for cell in group} for name in labels}
    return {
        name: text for name, (text, *others) in texts.items() if not others and text != NO_VALUE
    }


def _curves(values: list[PaperValue]) -> list[list[PaperValue]]:
    curves: dict[Any, list[PaperValue]] = {}
    for value in values:
        if value.round is not None:
            curves.setdefault((value.item, tuple(value.labels.items()), value.other), []).append(
                value
            )
    return [sorted(curve, key=lambda value: value.round or 0) for curve in curves.values()]


def _one(candidates: list[list[PaperValue]], named: Labels) -> list[PaperValue]:
    """The only candidate, if there is any."""
    if len(candidates) > 1:
        place = ", ".join(f"{name} {value}" for name, value in named.items())
        first, second = (_described(values[0], named) for values in candidates[:2])
        raise UserError(
            f"paper has two values for {place}: {first} and {second}; name one item, keep them apart by an axis, "
            f"or add a column to the file in {FOLDER} with the label that tells them apart"
        )
    return candidates[0] if candidates else []


def _described(value: PaperValue, known: Labels) -> str:
    words = [f"{name} {text}" for name, text in value.labels.items() if name not in known]
    return f"{value.value:g} ({'; '.join([value.item, *words, *([value.other] if value.other else [])])})"


def _first_source(values: list[PaperValue]) -> list[PaperValue]:
    best = min((SOURCES.index(value.source) for value in values), default=0)
    return [value for value in values if value.source == SOURCES[best]]


def _text(value: Any) -> str:
    return NO_VALUE if value is None else label_text(value)
