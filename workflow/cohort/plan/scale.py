"""Scales: the same study, cheaper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cohort.cell.settings import EVALUATION_PLANS
from cohort.metrics.names import SERIES
from cohort.plan.expand import Values, fits
from cohort.plan.resolve import NEUTRAL
from cohort.training.schedules import parse_schedule

FULL = "full"
Run = frozenset[tuple[str, Any]]  # 1 and 1.0 are one setting here too


def scaled(values: Values, scale: Mapping[str, Any]) -> Values:
    """A cell's settings at a scale. The learning rate's decay is stretched, so that a run ends at the rate at which it would have, unless
    the scale wants the beginning of the run as it is."""
    changed = dict(values)
    if "rounds" in scale:
        rounds = max(1, round(values["rounds"] * scale["rounds"]))
        changed["rounds"] = rounds
        if scale.get("stretched", True):
            changed["lr_decay"] = values["lr_decay"] ** (values["rounds"] / rounds)
        changed["schedule"] = str(
            parse_schedule(values["schedule"]).scaled(rounds / values["rounds"])
        )
        for key in EVALUATION_PLANS:
            changed[key] = _shrunk(values[key], rounds / values["rounds"])
    if "samples" in scale:
        changed["samples"] = values["samples"] * scale["samples"]
    return changed


def _shrunk(every: int | str, share: float) -> int | str:
    """The same number of evaluations of fewer rounds, at least one round apart; the last ten rounds are ten however few there are."""
    if isinstance(every, str):
        return re.sub(
            r"(?<!last )\b[0-9]+", lambda number: str(_shrunk(int(number[0]), share)), every
        )
    return max(1, round(every * share)) if every else 0


def settings_of(values: Values) -> Values:
    """The settings of a cell: what it shares with a cell of another series or another experiment."""
    return NEUTRAL | {key: value for key, value in values.items() if key != SERIES}


class First:
    """What a scale makes of each run of a study is what the first experiment that has the run says."""

    def __init__(self) -> None:
        self._scales: dict[Run, Mapping[str, Any] | None] = {}

    def settle(
        self, cells: Iterable[Values], kept: list[Values], scale: Mapping[str, Any]
    ) -> list[Values]:
        """Note what an experiment says of its cells, all but the `kept` left out, and return those kept that no earlier one leaves out."""
        runs = {id(values): _run(values) for values in cells}
        wanted = {runs[id(values)] for values in kept}
        for run in runs.values():
            self._scales.setdefault(run, scale if run in wanted else None)
        return [values for values in kept if self._scales[runs[id(values)]] is not None]

    def scale_of(self, values: Values) -> Mapping[str, Any]:
        """The scale of a cell that is not left out, with what it says of such cells in particular."""
        scale = self._scales[_run(values)] or {}
        for entry in scale.get("except", []):
            if fits(values, entry["given"]):
                scale = {**scale, **entry}
        return scale


def _run(values: Values) -> Run:
    return frozenset(settings_of(values).items())


def thinned(cells: list[Values], facets: Iterable[tuple[str, ...]]) -> list[Values]:
    """Cells enough to show each panel and each hue of every figure once, though not each hue in each panel; one where no figure is."""
    kept: dict[int, None] = {}
    for columns in dict.fromkeys([(), *facets]):
        seen = {_place(cells[position], columns) for position in kept}
        for position, cell in enumerate(cells):
            if _place(cell, columns) not in seen:
                seen.add(_place(cell, columns))
                kept[position] = None
    return [cells[position] for position in sorted(kept)]


def _place(cell: Values, columns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(cell.get(column) for column in columns)
