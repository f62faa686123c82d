"""Expand a validated study file into its cells, figures, tables and claims at a scale. An
experiment may extend one of another study: `extends: fedentopt.baselines` has its cells, and those
of strategies that it adds (`strategy: [+mine]`) under the same protocol."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cohort.core import UserError, check_allowed, counted, errors_at, paths
from cohort.plan import items, matrix
from cohort.plan.matrix import Values
from cohort.plan.resolution import REQUIRED, Resolver
from cohort.plan.study import Experiment, Row, Study
from cohort.results.names import BASELINE, PANEL, SERIES

StudyContent = Mapping[str, Any]
STATED = {"description", "source", "question", "methods", "key_figure", "findings"}
"""The keys of a study's content that it keeps as they are."""


class Extended(NamedTuple):
    """An experiment that another study's extends: its study, the study's content, its name, and
    the strategies that are added to it."""

    study: str
    content: StudyContent
    experiment: str
    added: list[str]


class FullScale(NamedTuple):
    """An experiment at full scale: its cells, the values on its axes, the scale to apply, and the
    experiments before the one it extends, which decide how a scale changes shared cells."""

    cells: list[Values]
    axes: dict[str, list[Any]]
    scale: matrix.Scale
    earlier: Sequence["FullScale"] = ()


def extended_experiments(
    content: StudyContent, read: Callable[[str], StudyContent], studies: list[str]
) -> dict[str, Extended]:
    """The experiment of another study that each of this one extends, if any. `read` gives a study's
    content. Raise UserError if a source is unknown or extends another one itself."""
    extended = {}
    for key, block in content.get("experiments", {}).items():
        if "extends" not in block:
            continue
        where = f"experiments.{key}.extends is '{block['extends']}'"
        study, _, experiment = block["extends"].partition(".")
        check_allowed(study, studies, f"{where}, but there is no study '{study}'")
        source = read(study)
        problem = f"{where}, but {study} has no experiment '{experiment}'"
        check_allowed(experiment, source["experiments"], problem)
        if origin := source["experiments"][experiment].get("extends"):
            raise UserError(f"{where}, which extends {origin} itself; extend that one")
        added = [name.removeprefix("+") for name in block.get("strategy", [])]
        extended[key] = Extended(study, source, experiment, added)
    return extended


def drawn_specs(
    content: StudyContent, extended: Mapping[str, Extended]
) -> tuple[dict[str, Values], dict[str, Values]]:
    """A study's figures and tables, after those that it inherits and does not redefine."""
    own_names = {*content.get("figures", {}), *content.get("tables", {})}
    sections: dict[str, dict[str, Values]] = {"figures": {}, "tables": {}}
    for section, specs in sections.items():
        for key, source in extended.items():
            for name, spec in source.content.get(section, {}).items():
                if spec["experiment"] == source.experiment and name not in own_names:
                    specs.setdefault(name, spec | {"experiment": key})
        sections[section] = specs | content.get(section, {})
    return sections["figures"], sections["tables"]


@dataclass(frozen=True)
class Expansion:
    """A study's content, and how to expand it: the scale's name and its `default` where the study
    does not change it, the number of seeds (0: as they say), and the experiments it extends."""

    file: Path
    content: StudyContent
    scale: str
    default: matrix.Scale
    seeds: int
    resolver: Resolver
    extended: Mapping[str, Extended]

    def study(self) -> tuple[Study, list[str]]:
        """The expanded study, and notes on what is left out; a mistake names the file and key."""
        content, name = self.content, self.file.stem
        with errors_at(self.file):
            figures, tables = drawn_specs(content, self.extended)
            items.check_names(content, figures, tables)
            full = self._full_experiments()
            papers = dict.fromkeys(full, name)
            papers |= {key: source.study for key, source in self.extended.items()}
            matrices = {key: (full[key].axes, full[key].cells) for key in full}
            facets, notes = self._checked_facets((figures, tables), matrices, papers)
            experiments, scale_notes = self._planned_experiments(full, facets)
            for key, spec in (figures | tables).items():
                rows = experiments[spec["experiment"]].rows
                with errors_at(key):
                    items.check_recorded(spec, [self.resolver.cells[row.digest] for row in rows])
            contents = [*(source.content for source in self.extended.values()), content]
            titles = items.checked_titles(contents, matrices.values())
            claims = items.resolved_claims(content.get("claims", {}), matrices, name)
        fields: dict[str, Any] = {key: content[key] for key in STATED & {*content}}
        fields |= {"figures": figures, "tables": tables, "titles": titles, "claims": claims}
        study = Study(name, content["title"], experiments, papers=papers, **fields)
        return study, [f"{name}{note}" for note in [*notes, *scale_notes]]

    def _full_experiments(self) -> dict[str, FullScale]:
        """The experiments at full scale. Reject overrides that match none of the study's own."""
        full: dict[str, FullScale] = {}
        for key, block in self.content["experiments"].items():
            if key in self.extended:
                _, content, name, added = self.extended[key]
                blocks = content["experiments"]
                before = list(blocks)[: list(blocks).index(name)]
                earlier = [self._full(other, blocks[other], content) for other in before]
                full[key] = self._full(key, blocks[name], content, added)._replace(earlier=earlier)
            else:
                full[key] = self._full(key, block, self.content)
        cells = [cell for key in full.keys() - self.extended.keys() for cell in full[key].cells]
        for position, override in enumerate(self.content.get("overrides", [])):
            matrix.check_matched(override["given"], cells, f"overrides[{position}]: ")
        return full

    def _full(
        self, key: str, block: Values, content: StudyContent, added: Sequence[str] = ()
    ) -> FullScale:
        """An experiment of a study, with the strategies that another study adds to it."""
        shared, settings = content.get("settings", {}), block.get("settings", {})
        axes = matrix.axis_values(block)
        with errors_at(f"experiments.{key}"):
            positions = list(matrix.combinations(block))
            if not positions:
                raise UserError(".exclude leaves no cell")
            if added:
                default = settings.get("strategy", shared.get("strategy"))
                positions = with_strategies(positions, added, default)
            overrides = content.get("overrides", [])
            cells = [_with_overrides(shared, settings | values, overrides) for values in positions]
            if unset := [name for cell in cells for name in REQUIRED if name not in cell]:
                raise UserError(f"no value for '{unset[0]}'; give it under settings or as an axis")
            if self.seeds:
                cells = matrix.with_seeds(cells, self.seeds)
                axes["seed"] = list(dict.fromkeys(cell["seed"] for cell in cells))
        for label in paths.CELL_LABELS:
            axes.setdefault(label, list(dict.fromkeys(cell.get(label) for cell in cells)))
        if added:  # their values are last on the axes
            for label, values in axes.items():
                others = (cell[label] for cell in cells if label in cell)
                axes[label] = list(dict.fromkeys([*values, *others]))
        chosen = dict(self.default)
        for part in (content, block):
            chosen |= part.get("scales", {}).get(self.scale, {})
        if self.seeds:
            chosen.pop("seeds", None)
        return FullScale(cells, axes, chosen)

    def _checked_facets(
        self, sections: Sequence[Values], matrices: Mapping[str, items.AxesAndCells], papers: Values
    ) -> tuple[dict[str, list[tuple[str, ...]]], list[str]]:
        """Check figures and tables; return the facets of those of each experiment, and notes. One
        of an extended study in which added strategies have no place is taken out of `sections`."""
        facets: dict[str, list[tuple[str, ...]]] = {key: [] for key in matrices}
        notes = []
        own_names = {*self.content.get("figures", {}), *self.content.get("tables", {})}
        for specs in sections:
            for name, spec in list(specs.items()):
                key = spec["experiment"]
                try:
                    with errors_at(name):
                        facets[key] += items.checked_facets(spec, *matrices[key], papers[key])
                except UserError as error:
                    if name in own_names:
                        raise
                    del specs[name]
                    notes.append(f": left out, as an added strategy has no place in it: {error}")
        return facets, notes

    def _planned_experiments(
        self, full: Mapping[str, FullScale], facets: Mapping[str, list[tuple[str, ...]]]
    ) -> tuple[dict[str, Experiment], list[str]]:
        """Plan the experiments, with notes; `facets` are their figures' panels and hues."""
        of_study, experiments, notes = matrix.Decided(), {}, []
        for key, (all_cells, axes, chosen, earlier) in full.items():
            decided = {} if key in self.extended else of_study
            for previous in earlier:
                matrix.trained_cells(previous.cells, previous.scale, decided)
            with errors_at(f"experiments.{key}"):
                with errors_at(f".scales.{self.scale}.without"):
                    cells = matrix.trained_cells(all_cells, chosen, decided)
                seeds = list(dict.fromkeys(cell["seed"] for cell in cells))[: chosen.get("seeds")]
                cells = [cell for cell in cells if cell["seed"] in seeds]
                if chosen.get("thin"):
                    cells = matrix.thinned_cells(cells, facets[key])
                experiments[key] = Experiment(self._planned_rows(cells, axes, decided), axes)
            if len(cells) < len(all_cells):
                note = f".{key}: {len(cells)} of {counted(len(all_cells), 'cell')} at this scale"
                notes.append(note + "".join(map(_without_text, chosen.get("without", []))))
        return experiments, notes

    def _planned_rows(
        self, cells: list[Values], axes: Iterable[str], scales: matrix.Decided
    ) -> list[Row]:
        rows: dict[tuple[str, Any], Row] = {}
        columns = dict.fromkeys([*paths.CELL_LABELS, *axes])
        for cell in cells:
            scale = scales[matrix.identity_of(cell)] or {}
            for exception in scale.get("except", []):
                if matrix.matches(cell, exception["given"]):
                    scale = {**scale, **exception}
            planned = self.resolver.plan_cell(matrix.settings_of(cell), scale)
            digest, share = planned.digest, planned.settings.rounds / cell["rounds"]
            labels = {column: cell.get(column) for column in columns}
            row = rows.setdefault((digest, cell.get(PANEL)), Row(labels, digest, share))
            for name in (label for label in columns if label == SERIES or "." in label):
                if row.labels.get(name) != cell.get(name):
                    named = f"{name} '{row.labels.get(name)}' and '{cell.get(name)}' name one run"
                    hint = f"show it in two experiments, or under two values of {PANEL}"
                    raise UserError(f"{named}, which can have one name only; {hint}")
        return list(rows.values())


def with_strategies(cells: list[Values], added: Iterable[str], default: str | None) -> list[Values]:
    """Add, for each added strategy, the cells that FedAvg has (else the first strategy), without
    the parameters of that one's parts. `default` is the strategy of cells that name none. Where a
    series tells strategies apart, an added one is a series of its own."""
    names = list(dict.fromkeys(cell.get("strategy", default) for cell in cells))
    reference = BASELINE if BASELINE in names else names[0]
    references = [cell for cell in cells if cell.get("strategy", default) == reference]
    shared = {cell.get(SERIES) for cell in cells if cell.get("strategy", default) != reference}
    extended = list(cells)
    for name in added:
        if name in names:
            raise UserError(f".strategy adds '{name}', which the experiment has already")
        for cell in references:
            values = {key: value for key, value in cell.items() if "." not in key}
            values["strategy"] = name
            if SERIES in cell and len(names) > 1 and cell[SERIES] not in shared:
                values[SERIES] = name
            if values not in extended:
                extended.append(values)
    return extended


def _with_overrides(shared: Values, values: Values, overrides: Iterable[Values]) -> Values:
    """A cell's values: its study's settings, then the overrides that match it (of two that set the
    same key, the later one wins), then its experiment's settings and its values on the axes."""
    matching = [entry for entry in overrides if matrix.matches(shared | values, entry["given"])]
    for override in matching:
        shared = shared | override["settings"]
    return shared | values


def _without_text(entry: Values) -> str:
    pairs = matrix.as_lists(entry).items()
    listed = (f"{key} {' or '.join(map(str, values))}" for key, values in pairs)
    return f", without {', '.join(listed)}"
