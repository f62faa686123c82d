"""Experiments that extend one of another study: `extends: fedentopt.baselines` has the same cells,
and those of the strategies that it adds (`strategy: [+mine]`) under the same protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cohort.core.errors import UserError, suggest
from cohort.plan.axes import Values
from cohort.results.measure import BASELINE
from cohort.results.names import SERIES

Text = Mapping[str, Any]


@dataclass(frozen=True)
class ExtendedExperiment:
    """An experiment that another study's extends: its study, the study's text, its name, and the
    strategies that are added to it."""

    study: str
    text: Text
    experiment: str
    added: list[str]


def extended_experiments(
    text: Text, read: Callable[[str], Text], studies: Iterable[str]
) -> dict[str, ExtendedExperiment]:
    """The experiment of another study that each experiment of this one extends, by experiment;
    those that extend none are left out. `read` gives a study's text. Raise UserError if a source is
    unknown or extends another one itself."""
    extended = {}
    for key, block in text.get("experiments", {}).items():
        if "extends" not in block:
            continue
        where = f"experiments.{key}.extends is '{block['extends']}'"
        study, _, experiment = block["extends"].partition(".")
        names = list(studies)
        if study not in names:
            raise UserError(f"{where}, but there is no study '{study}'{suggest(study, names)}")
        source = read(study)
        if experiment not in source["experiments"]:
            choices = suggest(experiment, source["experiments"])
            raise UserError(f"{where}, but {study} has no experiment '{experiment}'{choices}")
        if further := source["experiments"][experiment].get("extends"):
            raise UserError(f"{where}, which extends {further} itself; extend that one")
        added = [name.removeprefix("+") for name in block.get("strategy", [])]
        extended[key] = ExtendedExperiment(study, source, experiment, added)
    return extended


def inherited_items(
    text: Text, extended: Mapping[str, ExtendedExperiment], section: str
) -> dict[str, Values]:
    """The figures, or tables, of the extended experiments whose names this study does not use."""
    own = {*text.get("figures", {}), *text.get("tables", {})}
    drawn: dict[str, Values] = {}
    for key, source in extended.items():
        for name, spec in source.text.get(section, {}).items():
            if spec["experiment"] == source.experiment and name not in own:
                drawn.setdefault(name, spec | {"experiment": key})
    return drawn


def with_strategies(cells: list[Values], added: Iterable[str], default: str | None) -> list[Values]:
    """Add, for each added strategy, the cells that FedAvg has, or else the first strategy, without
    the parameters of that strategy's parts. Cells are given by their values on the axes.

    `default` is the strategy of cells that have none among their values. If a series tells
    strategies apart, an added one is a series of its own.
    """
    names = list(dict.fromkeys(cell.get("strategy", default) for cell in cells))
    reference = BASELINE if BASELINE in names else names[0]
    shared = {
        cell[SERIES] for cell in cells if SERIES in cell and cell.get("strategy") != reference
    }
    extended = list(cells)
    for name in added:
        if name in names:
            raise UserError(f".strategy adds '{name}', which the experiment has already")
        for cell in cells:
            if cell.get("strategy", default) != reference:
                continue
            values = {key: value for key, value in cell.items() if "." not in key}
            values["strategy"] = name
            if SERIES in cell and len(names) > 1 and cell[SERIES] not in shared:
                values[SERIES] = name
            if values not in extended:
                extended.append(values)
    return extended
