"""Expand a validated study file into its cells, figures, tables and claims at a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cohort.core.counts import counted
from cohort.core.errors import UserError, suggest
from cohort.core.paths import CELL_LABELS, CLAIMS_TABLE
from cohort.plan import claim_cells, drawings
from cohort.plan.axes import Values, axis_values, combinations
from cohort.plan.extension import ExtendedExperiment, inherited_items, with_strategies
from cohort.plan.located import errors_at
from cohort.plan.matching import check_overrides, overridden_values, without_matching
from cohort.plan.resolution import Resolver, check_required
from cohort.plan.scale import (
    Scale,
    ScaleChoices,
    first_seeds,
    settings_of,
    thinned_cells,
    with_seeds,
)
from cohort.plan.study import Experiment, Row, Study
from cohort.results.claims import Matrix
from cohort.results.names import PANEL, SERIES


@dataclass(frozen=True)
class FullScaleExperiment:
    """An experiment at full scale: cells' values, each label's values, and the scale to apply.

    `earlier` are the experiments before the one that it extends, which decide how a scale changes
    the cells that they share with it.
    """

    cells: list[Values]
    axes: dict[str, list[Any]]
    scale: Scale
    earlier: list[FullScaleExperiment] = field(default_factory=list)


def expand_study(
    file: Path,
    text: Mapping[str, Any],
    scale: str,
    default: Scale,
    resolver: Resolver,
    extended: Mapping[str, ExtendedExperiment],
    seeds: int = 0,
) -> tuple[Study, list[str]]:
    """Expand the study in `file`, whose content is `text`, at a scale; return it with notes on
    cells that the scale leaves out.

    `default` is what the scale means where the study does not say otherwise. `extended` are the
    experiments that others extend. `seeds`, unless 0, is how many seeds every experiment has,
    whatever study and scale say. Every mistake is a UserError that names the file and the key.
    """
    with errors_at(file):
        return _expanded_study(file.stem, text, scale, default, resolver, extended, seeds)


def _expanded_study(
    name: str,
    text: Mapping[str, Any],
    scale: str,
    default: Scale,
    resolver: Resolver,
    extended: Mapping[str, ExtendedExperiment],
    seeds: int,
) -> tuple[Study, list[str]]:
    drawn = {
        key: inherited_items(text, extended, key) | text.get(key, {})
        for key in ("figures", "tables")
    }
    _check_drawn(drawn["figures"], drawn["tables"], text["experiments"])
    full = {
        key: _extend(key, extended[key], scale, default, seeds)
        if key in extended
        else _full_experiment(key, block, text, scale, default, seeds)
        for key, block in text["experiments"].items()
    }
    own_cells = [cell for key in full.keys() - extended.keys() for cell in full[key].cells]
    check_overrides(text.get("overrides", []), own_cells)
    papers = {key: extended[key].study if key in extended else name for key in full}
    shown, notes = _checked_facets(name, text, drawn, full, papers)
    experiments, scale_notes = _planned_experiments(name, full, shown, scale, resolver)
    study = Study(
        name=name,
        title=text["title"],
        description=text.get("description", ""),
        source=text.get("source", {}),
        experiments=experiments,
        figures=drawn["figures"],
        tables=drawn["tables"],
        titles=_checked_titles(text, extended, full, resolver.strategies),
        claims=_resolved_claims(name, text.get("claims", {}), full),
        papers=papers,
        key_figure=drawings.checked_key_figure(text, drawn["figures"]),
        findings=drawings.checked_findings(
            text, drawn["tables"], {key: full[key].axes for key in full}
        ),
        **{key: text[key] for key in ("question", "methods") if key in text},
    )
    return study, notes + scale_notes


def _checked_facets(
    study: str,
    text: Mapping[str, Any],
    drawn: Mapping[str, dict[str, Values]],
    full: Mapping[str, FullScaleExperiment],
    papers: Mapping[str, str],
) -> tuple[dict[str, list[tuple[str, ...]]], list[str]]:
    """Check figures and tables; return the facets of those of each experiment, and notes. One of an
    extended study in which added strategies have no place is taken out of `drawn`."""
    shown: dict[str, list[tuple[str, ...]]] = {key: [] for key in full}
    notes = []
    for section, specs in drawn.items():
        for name, spec in list(specs.items()):
            key = spec["experiment"]
            try:
                with errors_at(name):
                    axes, cells = full[key].axes, full[key].cells
                    shown[key] += drawings.checked_facets(spec, axes, cells, papers[key])
            except UserError as error:
                if name in text.get(section, {}):
                    raise
                del specs[name]
                notes.append(f"{study}: left out, as an added strategy has no place in it: {error}")
    return shown, notes


def _checked_titles(
    text: Mapping[str, Any],
    extended: Mapping[str, ExtendedExperiment],
    full: Mapping[str, FullScaleExperiment],
    strategies: Mapping[str, Any],
) -> dict[str, dict[str, str]]:
    """The titles of label values of a study, and of those that it extends. Raise UserError for one
    that two values share, or of a value that no cell has."""
    matrices = [(experiment.axes, experiment.cells) for experiment in full.values()]
    drawings.check_titles(text.get("titles", {}), matrices)
    titles: dict[str, dict[str, str]] = {}
    for part in (*(source.text for source in extended.values()), text):
        for label, values in part.get("titles", {}).items():
            titles[label] = titles.get(label, {}) | values
    of_strategies = {name: entry["title"] for name, entry in strategies.items()}
    for label in {"strategy", *titles}:
        defaults = of_strategies if label == "strategy" else {}
        drawings.check_distinct(label, defaults | titles.get(label, {}), matrices)
    return titles


def _check_drawn(
    figures: Mapping[str, Values], tables: Mapping[str, Values], experiments: Mapping[str, Any]
) -> None:
    """Reject figures and tables whose names clash, or whose experiment does not exist."""
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
    added: Sequence[str] = (),
) -> FullScaleExperiment:
    axes = axis_values(block)
    settings, overrides = text.get("settings", {}), text.get("overrides", [])
    of_block = block.get("settings", {})
    with errors_at(f"experiments.{key}"):
        positions = list(combinations(block))
        if added:
            strategy = of_block.get("strategy", settings.get("strategy"))
            positions = with_strategies(positions, added, strategy)
    cells = [overridden_values(settings, of_block | values, overrides) for values in positions]
    if seeds:
        with errors_at(f"experiments.{key}"):
            for cell in cells:
                check_required(cell)
        cells = with_seeds(cells, seeds)
        axes["seed"] = list(dict.fromkeys(cell["seed"] for cell in cells))
    for label in CELL_LABELS:
        axes.setdefault(label, list(dict.fromkeys(cell.get(label) for cell in cells)))
    if added:  # they are last on the axes
        for label, values in axes.items():
            further = (cell[label] for cell in cells if label in cell)
            axes[label] = list(dict.fromkeys([*values, *further]))
    changed = [part.get("scales", {}).get(scale, {}) for part in (text, block)]
    own_scale = {**default, **changed[0], **changed[1]}
    if seeds:
        own_scale.pop("seeds", None)
    return FullScaleExperiment(cells, axes, own_scale)


def _extend(
    key: str, source: ExtendedExperiment, scale: str, default: Scale, seeds: int
) -> FullScaleExperiment:
    """Expand the experiment that extends another one, with whose cells it begins."""
    blocks = source.text["experiments"]
    before = list(blocks)[: list(blocks).index(source.experiment)]
    arguments = source.text, scale, default, seeds
    earlier = [_full_experiment(block, blocks[block], *arguments) for block in before]
    full = _full_experiment(key, blocks[source.experiment], *arguments, source.added)
    return replace(full, earlier=earlier)


def _planned_experiments(
    study: str,
    full: Mapping[str, FullScaleExperiment],
    shown: Mapping[str, list[tuple[str, ...]]],
    scale: str,
    resolver: Resolver,
) -> tuple[dict[str, Experiment], list[str]]:
    """Plan the experiments at a scale, with notes; `shown` are their figures' panels and hues."""
    own_choices, experiments, notes = ScaleChoices(), {}, []
    for key, experiment in full.items():
        choices = ScaleChoices() if experiment.earlier else own_choices
        for previous in experiment.earlier:
            choices.resolve(
                previous.cells,
                without_matching(previous.cells, previous.scale.get("without", [])),
                previous.scale,
            )
        excluded = experiment.scale.get("without", [])
        with errors_at(f"experiments.{key}"):
            with errors_at(f".scales.{scale}.without"):
                kept = without_matching(experiment.cells, excluded)
            cells = choices.resolve(experiment.cells, kept, experiment.scale)
            cells = first_seeds(cells, experiment.scale)
            if experiment.scale.get("thin"):
                cells = thinned_cells(cells, shown[key])
            experiments[key] = _planned_experiment(cells, experiment.axes, choices, resolver)
        if len(cells) < len(experiment.cells):
            missing = "".join(f", without {_entry_text(entry)}" for entry in excluded)
            notes.append(
                f"{study}.{key}: {len(cells)} of {counted(len(experiment.cells), 'cell')} "
                f"at this scale{missing}"
            )
    return experiments, notes


def _planned_experiment(
    cells: list[Values], axes: dict[str, list[Any]], choices: ScaleChoices, resolver: Resolver
) -> Experiment:
    rows: dict[tuple[str, Any], Row] = {}
    columns = [*CELL_LABELS, *(column for column in axes if column not in CELL_LABELS)]
    for cell in cells:
        check_required(cell)
        planned = resolver.plan_cell(settings_of(cell), choices.scale_of(cell))
        digest, share = planned.digest, planned.settings.rounds / cell["rounds"]
        labels = {column: cell.get(column) for column in columns}
        series = rows.setdefault((digest, cell.get(PANEL)), Row(labels, digest, share)).labels.get(
            SERIES
        )
        if series != cell.get(SERIES):
            raise UserError(
                f"{SERIES} '{series}' and '{cell.get(SERIES)}' name the same run, which can have "
                f"one name only; show it in two experiments, or under two values of {PANEL}"
            )
    return Experiment(list(rows.values()), axes)


def _resolved_claims(
    study: str, specs: Mapping[str, Values], full: Mapping[str, FullScaleExperiment]
) -> dict[str, Values]:
    """Resolve the claims of a study: check each, and add its comparisons and the share of the
    rounds that this scale trains of each experiment."""
    matrix = Matrix()
    for key, experiment in full.items():
        matrix.add(key, experiment.axes, experiment.cells)
    shares = {key: experiment.scale.get("rounds", 1) for key, experiment in full.items()}
    return claim_cells.resolve_claims(specs, matrix, shares, study)


def _entry_text(entry: Values) -> str:
    return ", ".join(
        f"{key} {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in entry.items()
    )
