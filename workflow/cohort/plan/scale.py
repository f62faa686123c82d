"""Scales: make a study cheaper by fewer rounds, samples, seeds or cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cohort.plan.axes import Values, check_matched, matches
from cohort.results.names import FREE
from cohort.settings import DEFAULTS, EVALUATION_PLANS
from cohort.training.procedures import parse_procedure
from cohort.training.schedules import parse_schedule

Scale = Mapping[str, Any]
Identity = frozenset[tuple[str, Any]]  # here, too, 1 and 1.0 are the same setting


def scaled_values(values: Values, scale: Scale) -> Values:
    """Scale a cell's samples and rounds, with the settings that depend on the number of rounds."""
    changed = dict(values)
    if "rounds" in scale:
        rounds = max(1, round(values["rounds"] * scale["rounds"]))
        share = rounds / values["rounds"]
        changed["rounds"] = rounds
        if scale.get("stretched", True):
            changed["lr_decay"] = values["lr_decay"] ** (values["rounds"] / rounds)
        changed["schedule"] = _scaled_schedule(values["schedule"], share)
        changed["procedure"] = str(parse_procedure(values["procedure"]).scaled(share))
        for key in EVALUATION_PLANS:
            changed[key] = _scaled_interval(values[key], share)
    if "samples" in scale:
        changed["samples"] = values["samples"] * scale["samples"]
    return changed


def _scaled_schedule(name: str, share: float) -> str:
    """Scale a schedule, by name. A factor that this computes is rounded to six digits."""
    schedule = parse_schedule(name)
    scaled = schedule.scaled(share)
    rounded = {
        key: float(f"{value:g}")
        for key, value in vars(scaled).items()
        if isinstance(value, float) and value != getattr(schedule, key)
    }
    return str(replace(scaled, **rounded))


def _scaled_interval(every: int | str, share: float) -> int | str:
    """Scale an evaluation interval so that the number of evaluations stays, at least one round
    apart; `last 10` stays ten rounds."""
    if isinstance(every, str):
        return re.sub(
            r"(?<!last )\b[0-9]+",
            lambda number: str(_scaled_interval(int(number[0]), share)),
            every,
        )
    return max(1, round(every * share)) if every else 0


def settings_of(values: Values) -> Values:
    """A cell's values with every default, without the labels that are not settings."""
    return DEFAULTS | {key: value for key, value in values.items() if key not in FREE}


class ScaleChoices:
    """How a scale changes each run of a study, or that it leaves the run out.

    Several experiments may have the same run; the first one in the study decides for all of them.
    """

    def __init__(self) -> None:
        self._scales: dict[Identity, Scale | None] = {}

    def trained(self, cells: list[Values], scale: Scale) -> list[Values]:
        """The cells of an experiment to train: those that neither `without` of its scale nor an
        earlier experiment leaves out. Raise a UserError where `without` matches no cell."""
        kept = cells
        for entry in scale.get("without", []):
            check_matched(entry, cells)
            kept = [cell for cell in kept if not matches(cell, entry)]
        identities = {id(cell): _identity(cell) for cell in cells}
        wanted = {identities[id(cell)] for cell in kept}
        for identity in identities.values():
            self._scales.setdefault(identity, scale if identity in wanted else None)
        return [cell for cell in kept if self._scales[identities[id(cell)]] is not None]

    def scale_of(self, cell: Values) -> Scale:
        """The scale of a cell that is not left out, including the exceptions that match it."""
        scale = self._scales[_identity(cell)] or {}
        for exception in scale.get("except", []):
            if matches(cell, exception["given"]):
                scale = {**scale, **exception}
        return scale


def _identity(cell: Values) -> Identity:
    return frozenset(settings_of(cell).items())


def first_seeds(cells: list[Values], scale: Scale) -> list[Values]:
    """The cells of the first seeds, as many as the scale has; all without a limit."""
    if "seeds" not in scale:
        return cells
    seeds = list(dict.fromkeys(cell["seed"] for cell in cells))[: scale["seeds"]]
    return [cell for cell in cells if cell["seed"] in seeds]


def with_seeds(cells: list[Values], count: int) -> list[Values]:
    """The cells with `count` seeds each: the first ones that they have, then the next numbers.

    Cells that differ in nothing but their seed stay together.
    """
    seeds: dict[Identity, list[Any]] = {}
    firsts: dict[Identity, Values] = {}
    for cell in cells:
        rest = _without_seed(cell)
        firsts.setdefault(rest, cell)
        seeds.setdefault(rest, []).append(cell["seed"])
    seeded = []
    for rest, cell in firsts.items():
        own = list(dict.fromkeys(seeds[rest]))
        further = (seed for seed in range(count + len(own)) if seed not in own)
        seeded += [cell | {"seed": seed} for seed in [*own, *further][:count]]
    return seeded


def thinned_cells(cells: list[Values], facets: Iterable[tuple[str, ...]]) -> list[Values]:
    """The first cells that together show each panel and each hue of every figure once, but not each
    hue in each panel, and each strategy; with all their seeds.

    `facets` are the labels that make up the panels, or the hues, of each figure.
    """
    kept: dict[int, None] = {}
    for columns in dict.fromkeys([(), *facets, ("strategy",)]):
        seen = {_labels(cells[position], columns) for position in kept}
        for position, cell in enumerate(cells):
            if _labels(cell, columns) not in seen:
                seen.add(_labels(cell, columns))
                kept[position] = None
    wanted = {_without_seed(cells[position]) for position in kept}
    return [cell for cell in cells if _without_seed(cell) in wanted]


def _without_seed(cell: Values) -> Identity:
    return frozenset((key, value) for key, value in cell.items() if key != "seed")


def _labels(cell: Values, columns: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(cell.get(column) for column in columns)
