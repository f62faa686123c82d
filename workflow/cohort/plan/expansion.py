"""Expand a validated study file into its cells, figures, tables and claims at a scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cohort.claims import Matrix
from cohort.core.errors import UserError, suggest
from cohort.core.layout import CLAIMS_TABLE
from cohort.metrics.names import PANEL, SERIES
from cohort.plan import claims
from cohort.plan.axes import Values, axis_values, combinations
from cohort.plan.drawings import check_titles, facets
from cohort.plan.errors import located
from cohort.plan.matching import check_overrides, overridden, without
from cohort.plan.resolution import Resolver, check_required
from cohort.plan.scale import (
    Scale,
    ScaleChoices,
    first_seeds,
    scaled,
    settings_of,
    thinned,
    with_seeds,
)
from cohort.plan.sizes import with_sizes
from cohort.plan.study import Experiment, Row, Study

LABELS = ("dataset", "model", "partition", "J", "strategy", "seed")
"""The labels that every cell has; its experiment's axes are the others."""


@dataclass(frozen=True)
class FullExperiment:
    """An experiment at full scale: every cell's values, the values of each label, its scale."""

    cells: list[Values]
    axes: dict[str, list[Any]]
    scale: Scale


def expand_study(
    file: Path,
    text: Mapping[str, Any],
    scale: str,
    default: Scale,
    resolver: Resolver,
    seeds: int = 0,
) -> tuple[Study, list[str]]:
    """The study in `file`, whose content is `text`, and notes on cells that the scale leaves out.

    `default` is what the scale means where the study does not say otherwise; `seeds` is how many
    seeds every experiment has, whatever study and scale say, if it is not 0. Every mistake is a
    UserError that names the file and the key.
    """
    with located(file):
        return _expanded(file.stem, text, scale, default, resolver, seeds)


def _expanded(
    name: str, text: Mapping[str, Any], scale: str, default: Scale, resolver: Resolver, seeds: int
) -> tuple[Study, list[str]]:
    figures, tables = text.get("figures", {}), text.get("tables", {})
    _check_drawn(figures, tables, text["experiments"])
    full = {
        key: _full_experiment(key, block, text, scale, default, seeds)
        for key, block in text["experiments"].items()
    }
    every_cell = [cell for experiment in full.values() for cell in experiment.cells]
    check_overrides(text.get("overrides", []), every_cell)
    shown: dict[str, list[tuple[str, ...]]] = {key: [] for key in full}
    for drawn, spec in (figures | tables).items():
        key = spec["experiment"]
        with located(drawn):
            shown[key] += facets(spec, full[key].axes, full[key].cells, name)
    tables = {
        drawn: with_sizes(spec, full[spec["experiment"]].cells, resolver.datasets)
        for drawn, spec in tables.items()
    }
    experiments, notes = _experiments(name, full, shown, scale, resolver)
    titles = text.get("titles", {})
    check_titles(titles, [experiment.axes for experiment in full.values()])
    study = Study(
        name=name,
        title=text["title"],
        description=text.get("description", ""),
        experiments=experiments,
        figures=figures,
        tables=tables,
        titles=titles,
        claims=_claims(name, text.get("claims", {}), full),
    )
    return study, notes


def _check_drawn(
    figures: Mapping[str, Values], tables: Mapping[str, Values], experiments: Mapping[str, Any]
) -> None:
    """Reject names that clash, and figures and tables of an experiment that does not exist."""
    if CLAIMS_TABLE in {*figures, *tables}:
        raise UserError(
            f"'{CLAIMS_TABLE}' is the name of the table of claims; rename the figure or table"
        )
    for twice in sorted(set(figures) & set(tables)):
        raise UserError(f"'{twice}' names both a figure and a table; rename one of them")
    for drawn, spec in [*figures.items(), *tables.items()]:
        key = spec["experiment"]
        if key not in experiments:
            raise UserError(f"{drawn}.experiment is '{key}'{suggest(key, experiments)}")


def _full_experiment(
    key: str,
    block: Mapping[str, Any],
    text: Mapping[str, Any],
    scale: str,
    default: Scale,
    seeds: int,
) -> FullExperiment:
    axes = axis_values(block)
    settings, overrides = text.get("settings", {}), text.get("overrides", [])
    with located(f"experiments.{key}"):
        own = [block.get("settings", {}) | values for values in combinations(block)]
    cells = [overridden(settings, values, overrides) for values in own]
    if seeds:
        with located(f"experiments.{key}"):
            for cell in cells:
                check_required(cell)
        cells = with_seeds(cells, seeds)
        axes["seed"] = list(dict.fromkeys(cell["seed"] for cell in cells))
    for label in LABELS:
        axes.setdefault(label, list(dict.fromkeys(cell.get(label) for cell in cells)))
    changed = [part.get("scales", {}).get(scale, {}) for part in (text, block)]
    own_scale = {**default, **changed[0], **changed[1]}
    if seeds:
        own_scale.pop("seeds", None)
    return FullExperiment(cells, axes, own_scale)


def _experiments(
    study: str,
    full: Mapping[str, FullExperiment],
    shown: Mapping[str, list[tuple[str, ...]]],
    scale: str,
    resolver: Resolver,
) -> tuple[dict[str, Experiment], list[str]]:
    """The experiments at a scale, with notes; `shown` are the panels and hues of their figures."""
    choices, experiments, notes = ScaleChoices(), {}, []
    for key, experiment in full.items():
        excluded = experiment.scale.get("without", [])
        with located(f"experiments.{key}"):
            with located(f".scales.{scale}.without"):
                kept = without(experiment.cells, excluded)
            cells = choices.resolve(experiment.cells, kept, experiment.scale)
            cells = first_seeds(cells, experiment.scale)
            if experiment.scale.get("thin"):
                cells = thinned(cells, shown[key])
            experiments[key] = _planned(cells, experiment.axes, choices, resolver)
        if len(cells) < len(experiment.cells):
            missing = "".join(f", without {_described(entry)}" for entry in excluded)
            notes.append(
                f"{study}.{key}: {len(cells)} of {len(experiment.cells)} cells at this scale"
                f"{missing}"
            )
    return experiments, notes


def _planned(
    cells: list[Values], axes: dict[str, list[Any]], choices: ScaleChoices, resolver: Resolver
) -> Experiment:
    rows: dict[tuple[str, Any], Row] = {}
    columns = [*LABELS, *(column for column in axes if column not in LABELS)]
    for cell in cells:
        check_required(cell)
        settings = scaled(settings_of(cell), choices.scale_of(cell))
        digest, share = resolver.plan_cell(settings), settings["rounds"] / cell["rounds"]
        labels = {column: cell.get(column) for column in columns}
        known = rows.setdefault((digest, cell.get(PANEL)), Row(labels, digest, share)).labels.get(
            SERIES
        )
        if known != cell.get(SERIES):
            raise UserError(
                f"{SERIES} '{known}' and '{cell.get(SERIES)}' name the same run, which can have "
                f"one name only; show it in two experiments, or under two values of {PANEL}"
            )
    return Experiment(list(rows.values()), axes)


def _claims(
    study: str, specs: Mapping[str, Values], full: Mapping[str, FullExperiment]
) -> dict[str, Values]:
    """The claims with their comparisons, and the share of the rounds that each experiment keeps."""
    matrix = Matrix()
    for key, experiment in full.items():
        matrix.add(key, experiment.axes, experiment.cells)
    shares = {key: experiment.scale.get("rounds", 1) for key, experiment in full.items()}
    return claims.resolve(specs, matrix, shares, study)


def _described(entry: Values) -> str:
    return ", ".join(
        f"{key} {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in entry.items()
    )
