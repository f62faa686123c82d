"""One `load` for the Snakefile and the command line: config files in, planned cells out.

Pure, and no I/O but the YAML and, for data sets behind a login, a look whether they are here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cohort.cell.planned import Planned
from cohort.claims import Matrix
from cohort.core.errors import UserError, suggest
from cohort.metrics.names import SERIES
from cohort.plan.absent import Absent, stand_ins
from cohort.plan.claims import resolve
from cohort.plan.drawings import check_titles, facets
from cohort.plan.expand import (
    Values,
    axis_values,
    check_overrides,
    combinations,
    left_over,
    overridden,
)
from cohort.plan.only import read_only
from cohort.plan.resolve import Resolver, needed_settings
from cohort.plan.scale import FULL, First, scaled, settings_of, thinned
from cohort.plan.sizes import with_sizes
from cohort.plan.study import Experiment, Row, Study
from cohort.plan.validation import Validator
from cohort.plan.yaml_files import read_yaml
from cohort.training.procedures import parse_procedure

CONFIG = Path("config")
CLAIMS_TABLE = "claims"  # what the table of a study's claims is called
WORD = r"[a-z][a-z0-9_]{0,60}"  # what studies, experiments, figures and tables may be called
LABELS = ("dataset", "model", "partition", "J", "strategy", "seed")


class Plan:
    """The cells, shards and data of some studies at a scale, each kept once by its digest; a study is expanded when first asked for."""

    def __init__(self, config: dict[str, Any], validator: Validator, scales: Mapping[str, Any]):
        self.config, self.scale = config, config["scale"]
        self.datasets, self.strategies = (
            _checked(validator, name) for name in ("datasets", "strategies")
        )
        self.studies: dict[str, Study] = {}
        self.notes: list[str] = []
        self.tell: Callable[[str], None] = lambda note: None
        self.scales = list(scales)
        self._scale = scales[self.scale]
        cheaper = [name for name in scales if name != FULL]
        names = {
            "dataset": list(self.datasets),
            "strategy": list(self.strategies),
            "scale": cheaper,
        }
        self._validator = Validator(CONFIG / "schemas", names)
        self._resolver = Resolver(self.datasets, self.strategies, self._validator.check_part)
        self.cells, self.shards, self.data = (
            self._resolver.cells,
            self._resolver.shards,
            self._resolver.data,
        )
        self._absent = Absent(self.datasets, config)

    @property
    def listed(self) -> list[str]:
        """The studies that the config lists."""
        listed = self.config["studies"]
        return [listed] if isinstance(listed, str) else listed

    def study(self, name: str) -> Study:
        """A study, expanded."""
        if name not in self.studies:
            file = study_file(name)
            text = read_yaml(file)
            self._validator.check(text, "study", file)
            notes: list[str] = []
            study = _study(name, text, self.scale, self._scale, self._resolver, notes)
            self.studies[name] = self._absent.without(study, self._resolver, notes)
            notes += stand_ins(self.studies[name], self._resolver)
            self.notes += notes
            for note in notes:
                self.tell(note)
        return self.studies[name]

    def shards_of(self, settings: Values, where: str) -> Planned:
        """The shards of a data set, a share of it, a partition, a number of clients and a seed, whether or not a study names them."""
        self._validator.check_part(settings, "settings", where)
        return self._resolver.dealt(settings, where)

    def digests(self, study: str, only: str = "") -> list[str]:
        """The cells of a study, or those of them whose labels `only` allows."""
        rows = [
            row for experiment in self.study(study).experiments.values() for row in experiment.rows
        ]
        wanted = read_only(only, rows) if only and rows else {}
        return list(
            dict.fromkeys(
                row.digest
                for row in rows
                if all(str(row.labels.get(key)) in wanted[key] for key in wanted)
            )
        )

    def look(self, study: str, experiment: str) -> Values:
        """What a figure or table needs to know beside the numbers: orders, titles, places among all strategies, what a round is."""
        found = self.study(study).experiments[experiment]
        places = {name: place for place, name in enumerate(self.strategies)}
        names = found.axes["strategy"]
        procedures = {self.cells[row.digest].settings["procedure"] for row in found.rows}
        round_names = {parse_procedure(name).round_name for name in procedures}
        return {
            "orders": found.axes,
            "styles": {name: places[name] for name in names},
            "titles": self.titles(study, names),
            "round": round_names.pop() if len(round_names) == 1 else "Round",
        }

    def titles(self, study: str, strategies: Iterable[str]) -> dict[str, dict[str, str]]:
        """What a study calls the values of its labels, and what these strategies are called where it does not say."""
        own = self.study(study).titles
        return own | {
            "strategy": {name: self.strategies[name]["title"] for name in strategies}
            | own.get("strategy", {})
        }


def load(overrides: Mapping[str, Any] | None = None) -> Plan:
    """The plan that config/config.yaml asks for, with some of its keys overridden."""
    config = read_yaml(CONFIG / "config.yaml") | dict(overrides or {})
    scales = read_yaml(CONFIG / "scales.yaml")
    validator = Validator(CONFIG / "schemas", {"study": all_studies(), "scale": list(scales)})
    validator.check(scales, "scales", CONFIG / "scales.yaml")
    validator.check(config, "config", f"{CONFIG / 'config.yaml'} or --config")
    plan = Plan(config, validator, scales)
    for name in plan.listed:
        plan.digests(name, config.get("only", ""))
    return plan


def study_file(name: str) -> Path:
    """Where a study is written."""
    return CONFIG / "studies" / f"{name}.yaml"


def all_studies() -> list[str]:
    """The names of the study files. A file of another name, such as an editor's, is none: its name would become a part of paths."""
    return sorted(
        file.stem for file in (CONFIG / "studies").glob("*.yaml") if re.fullmatch(WORD, file.stem)
    )


def drawn_names(study: str) -> list[str]:
    """The figures, tables and claims of a study by name, without expanding it; none where its file cannot be read (loading it says why)."""
    try:
        content = read_yaml(study_file(study))
        names = [
            *content.get("figures", {}),
            *content.get("tables", {}),
            *([CLAIMS_TABLE] if content.get("claims") else []),
        ]
        return [name for name in dict.fromkeys(names) if re.fullmatch(WORD, name)]
    except (UserError, AttributeError, TypeError):
        return []


def _checked(validator: Validator, name: str) -> dict[str, Any]:
    file = CONFIG / f"{name}.yaml"
    content: dict[str, Any] = read_yaml(file)
    validator.check(content, name, file)
    return content


def _study(
    name: str,
    text: Mapping[str, Any],
    scale: str,
    usual: Mapping[str, Any],
    resolver: Resolver,
    notes: list[str],
) -> Study:
    file = study_file(name)
    figures, tables = text.get("figures", {}), text.get("tables", {})
    if CLAIMS_TABLE in figures | tables:
        raise UserError(
            f"{file}: '{CLAIMS_TABLE}' is the table of the study's claims; call the figure or table otherwise"
        )
    for twice in sorted(set(figures) & set(tables)):
        raise UserError(
            f"{file}: '{twice}' names a figure and a table; one of them must be called otherwise"
        )
    experiments, first, matrix, shares = {}, First(), Matrix(), {}
    everything: list[Values] = []
    for key, block in text["experiments"].items():
        where = f"{file}: experiments.{key}"
        axes = axis_values(block)
        settings, overrides = text.get("settings", {}), text.get("overrides", [])
        own = [
            block.get("settings", {}) | combination for combination in combinations(block, where)
        ]
        cells = [overridden(settings, values, overrides) for values in own]
        everything += cells
        axes |= {
            column: list(dict.fromkeys(values.get(column) for values in cells))
            for column in LABELS
            if column not in axes
        }
        mine = {
            drawn: spec for drawn, spec in (figures | tables).items() if spec["experiment"] == key
        }
        shown = [
            labels
            for drawn, spec in mine.items()
            for labels in facets(spec, axes, cells, f"{file}: {drawn}", name)
        ]
        tables |= {
            drawn: with_sizes(spec, cells, resolver.datasets)
            for drawn, spec in mine.items()
            if drawn in tables
        }
        matrix.add(key, axes, cells)
        cheaper = (
            dict(usual)
            | text.get("scales", {}).get(scale, {})
            | block.get("scales", {}).get(scale, {})
        )
        shares[key] = cheaper.get("rounds", 1)
        kept = left_over(cells, cheaper.get("without", []), f"{where}.scales.{scale}.without")
        chosen = _seeds(first.settle(cells, kept, cheaper), cheaper)
        if cheaper.get("thin"):
            chosen = thinned(chosen, shown)
        if len(chosen) < len(cells):
            missing = "".join(f", without {_phrase(entry)}" for entry in cheaper.get("without", []))
            notes.append(
                f"{name}.{key}: {len(chosen)} of {len(cells)} cells at this scale{missing}"
            )
        experiments[key] = _experiment(chosen, axes, first, resolver, where)
    check_overrides(text.get("overrides", []), everything, file)
    for drawn, spec in (figures | tables).items():
        if spec["experiment"] not in experiments:
            raise UserError(
                f"{file}: {drawn}.experiment is '{spec['experiment']}'{suggest(spec['experiment'], experiments)}"
            )
    titles, claims = (
        text.get("titles", {}),
        resolve(text.get("claims", {}), matrix, shares, name, str(file)),
    )
    check_titles(titles, [found.axes for found in experiments.values()], file)
    return Study(
        name,
        text["title"],
        text.get("description", ""),
        experiments,
        figures,
        tables,
        titles,
        claims,
    )


def _phrase(entry: Values) -> str:
    return ", ".join(
        f"{key} {' or '.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in entry.items()
    )


def _seeds(cells: list[Values], scale: Mapping[str, Any]) -> list[Values]:
    if "seeds" not in scale:
        return cells
    seeds = list(dict.fromkeys(values["seed"] for values in cells))[: scale["seeds"]]
    return [values for values in cells if values["seed"] in seeds]


def _experiment(
    cells: list[Values], axes: dict[str, list[Any]], first: First, resolver: Resolver, where: str
) -> Experiment:
    rows: dict[str, Row] = {}
    columns = [*LABELS, *(column for column in axes if column not in LABELS)]
    for values in cells:
        needed_settings(values, where)
        digest = resolver.cell(scaled(settings_of(values), first.scale_of(values)), where)
        row = rows.setdefault(
            digest, Row({column: values.get(column) for column in columns}, digest)
        )
        if row.labels.get(SERIES) != values.get(SERIES):
            raise UserError(
                f"{where}: {SERIES} '{row.labels.get(SERIES)}' and '{values.get(SERIES)}' name the same run, which can have one name only; "
                "show it in two experiments"
            )
    return Experiment(list(rows.values()), axes)
