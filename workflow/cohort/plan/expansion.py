"""Expand a validated study file into its cells, figures, tables and claims at a scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from cohort.core.errors import UserError, errors_at
from cohort.core.paths import CELL_LABELS
from cohort.core.text import counted
from cohort.plan import items
from cohort.plan.axes import Values, axis_values, check_matched, combinations, overridden_values
from cohort.plan.extension import ExtendedExperiment, inherited_items, with_strategies
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
from cohort.results.names import PANEL, SERIES

Text = Mapping[str, Any]


class ScaleOptions(NamedTuple):
    """The scale by name, what it means where a study does not say otherwise, and the number of
    seeds that every experiment has whatever study and scale say (0: as they say)."""

    name: str
    default: Scale
    seeds: int = 0


@dataclass(frozen=True)
class FullScaleExperiment:
    """An experiment at full scale: cells' values, each label's values, and the scale to apply.

    `earlier` are the experiments before the one that it extends, which decide how a scale changes
    the cells that they share with it.
    """

    cells: list[Values]
    axes: dict[str, list[Any]]
    scale: Scale
    earlier: Sequence[FullScaleExperiment] = field(default=())


def expand_study(
    file: Path,
    text: Text,
    options: ScaleOptions,
    resolver: Resolver,
    extended: Mapping[str, ExtendedExperiment],
) -> tuple[Study, list[str]]:
    """Expand the study in `file`, whose content is `text`, at a scale; return it with notes on what
    is left out.

    `extended` are the experiments that others extend. Every mistake is a UserError that names the
    file and the key.
    """
    with errors_at(file):
        figures, tables = (
            inherited_items(text, extended, section) | text.get(section, {})
            for section in ("figures", "tables")
        )
        items.check_item_names(figures, tables, text["experiments"])
        full = _full_experiments(text, options, extended)
        papers = {key: extended[key].study if key in extended else file.stem for key in full}
        matrices = {key: (experiment.axes, experiment.cells) for key, experiment in full.items()}
        shares = {key: experiment.scale.get("rounds", 1) for key, experiment in full.items()}
        facets, notes = _checked_facets(text, (figures, tables), matrices, papers)
        experiments, scale_notes = _planned_experiments(full, facets, options.name, resolver)
        strategies = {name: entry["title"] for name, entry in resolver.strategies.items()}
        texts = [*(source.text for source in extended.values()), text]
        study = Study(
            name=file.stem,
            title=text["title"],
            description=text.get("description", ""),
            source=text.get("source", {}),
            experiments=experiments,
            figures=figures,
            tables=tables,
            titles=items.checked_titles(texts, strategies, matrices.values()),
            claims=items.resolved_claims(text.get("claims", {}), matrices, shares, file.stem),
            papers=papers,
            key_figure=items.checked_key_figure(text, figures),
            findings=items.checked_findings(text, tables, matrices),
            **{key: text[key] for key in ("question", "methods") if key in text},
        )
    return study, [f"{file.stem}{note}" for note in [*notes, *scale_notes]]


def _full_experiments(
    text: Text, options: ScaleOptions, extended: Mapping[str, ExtendedExperiment]
) -> dict[str, FullScaleExperiment]:
    """Expand the experiments of a study, and reject overrides that match none of its own cells."""
    full: dict[str, FullScaleExperiment] = {}
    for key, block in text["experiments"].items():
        if key not in extended:
            full[key] = _full_experiment(key, block, text, options)
            continue
        source = extended[key]
        blocks, its_text = source.text["experiments"], source.text
        whole = _full_experiment(key, blocks[source.experiment], its_text, options, source.added)
        before = list(blocks)[: list(blocks).index(source.experiment)]
        earlier = [_full_experiment(name, blocks[name], its_text, options) for name in before]
        full[key] = replace(whole, earlier=earlier)
    own = [cell for key in full.keys() - extended.keys() for cell in full[key].cells]
    for position, override in enumerate(text.get("overrides", [])):
        check_matched(override["given"], own, f"overrides[{position}]: ")
    return full


def _full_experiment(
    key: str, block: Text, text: Text, options: ScaleOptions, added: Sequence[str] = ()
) -> FullScaleExperiment:
    """Expand an experiment of a study's text, with the strategies that another study adds to it."""
    settings, own = text.get("settings", {}), block.get("settings", {})
    axes = axis_values(block)
    with errors_at(f"experiments.{key}"):
        positions = list(combinations(block))
        if added:
            default = own.get("strategy", settings.get("strategy"))
            positions = with_strategies(positions, added, default)
        overrides = text.get("overrides", [])
        cells = [overridden_values(settings, own | values, overrides) for values in positions]
        if options.seeds:
            for cell in cells:
                check_required(cell)
            cells = with_seeds(cells, options.seeds)
            axes["seed"] = list(dict.fromkeys(cell["seed"] for cell in cells))
    for label in CELL_LABELS:
        axes.setdefault(label, list(dict.fromkeys(cell.get(label) for cell in cells)))
    if added:  # they are last on the axes
        for label, values in axes.items():
            further = (cell[label] for cell in cells if label in cell)
            axes[label] = list(dict.fromkeys([*values, *further]))
    scale = dict(options.default)
    for part in (text, block):
        scale |= part.get("scales", {}).get(options.name, {})
    if options.seeds:
        scale.pop("seeds", None)
    return FullScaleExperiment(cells, axes, scale)


def _checked_facets(
    text: Text,
    drawn: Sequence[dict[str, Values]],
    matrices: Mapping[str, items.FullScale],
    papers: Mapping[str, str],
) -> tuple[dict[str, list[tuple[str, ...]]], list[str]]:
    """Check figures and tables; return the facets of those of each experiment, and notes. One of an
    extended study in which added strategies have no place is taken out of `drawn`."""
    facets: dict[str, list[tuple[str, ...]]] = {key: [] for key in matrices}
    notes = []
    own = {*text.get("figures", {}), *text.get("tables", {})}
    for specs in drawn:
        for name, spec in list(specs.items()):
            key = spec["experiment"]
            try:
                with errors_at(name):
                    facets[key] += items.checked_facets(spec, *matrices[key], papers[key])
            except UserError as error:
                if name in own:
                    raise
                del specs[name]
                notes.append(f": left out, as an added strategy has no place in it: {error}")
    return facets, notes


def _planned_experiments(
    full: Mapping[str, FullScaleExperiment],
    facets: Mapping[str, list[tuple[str, ...]]],
    scale: str,
    resolver: Resolver,
) -> tuple[dict[str, Experiment], list[str]]:
    """Plan the experiments at a scale, with notes; `facets` are their figures' panels and hues."""
    own_choices, experiments, notes = ScaleChoices(), {}, []
    for key, experiment in full.items():
        choices = ScaleChoices() if experiment.earlier else own_choices
        for previous in experiment.earlier:
            choices.trained(previous.cells, previous.scale)
        with errors_at(f"experiments.{key}"):
            with errors_at(f".scales.{scale}.without"):
                cells = choices.trained(experiment.cells, experiment.scale)
            cells = first_seeds(cells, experiment.scale)
            if experiment.scale.get("thin"):
                cells = thinned_cells(cells, facets[key])
            rows = _planned_rows(cells, experiment.axes, choices, resolver)
            experiments[key] = Experiment(rows, experiment.axes)
        if len(cells) < len(experiment.cells):
            all_cells = counted(len(experiment.cells), "cell")
            missing = map(_without_text, experiment.scale.get("without", []))
            notes.append(f".{key}: {len(cells)} of {all_cells} at this scale{''.join(missing)}")
    return experiments, notes


def _planned_rows(
    cells: list[Values], axes: dict[str, list[Any]], choices: ScaleChoices, resolver: Resolver
) -> list[Row]:
    rows: dict[tuple[str, Any], Row] = {}
    columns = [*CELL_LABELS, *(column for column in axes if column not in CELL_LABELS)]
    for cell in cells:
        check_required(cell)
        planned = resolver.plan_cell(settings_of(cell), choices.scale_of(cell))
        digest, share = planned.digest, planned.settings.rounds / cell["rounds"]
        labels = {column: cell.get(column) for column in columns}
        row = rows.setdefault((digest, cell.get(PANEL)), Row(labels, digest, share))
        if row.labels.get(SERIES) != cell.get(SERIES):
            raise UserError(
                f"{SERIES} '{row.labels.get(SERIES)}' and '{cell.get(SERIES)}' name the same run, "
                "which can have one name only; show it in two experiments, or under two values of "
                f"{PANEL}"
            )
    return list(rows.values())


def _without_text(entry: Values) -> str:
    listed = (
        f"{key} {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in entry.items()
    )
    return f", without {', '.join(listed)}"
