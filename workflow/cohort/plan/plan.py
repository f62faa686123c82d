"""One `load` for the Snakefile and the command line: config files in, planned cells out.

Pure, and no I/O but the YAML and, for data sets behind a login, a look whether they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cohort.cell import Planned
from cohort.claims import Matrix
from cohort.errors import UserError, suggest
from cohort.plan.absent import Absent, stand_ins
from cohort.plan.claims import resolve
from cohort.plan.drawings import facets
from cohort.plan.expand import Values, axis_values, combinations
from cohort.plan.reading import read_yaml
from cohort.plan.resolve import NEUTRAL, Resolver, needed_settings
from cohort.plan.scale import scaled, thinned
from cohort.plan.study import Experiment, Row, Study
from cohort.plan.validation import Validator

CONFIG = Path("config")
CLAIMS_TABLE = "claims"  # what the table of a study's claims is called
LABELS = ("dataset", "model", "partition", "J", "strategy", "seed")


class Plan:
    """The cells, shards and data of some studies at a scale, each kept once by its digest; a study is expanded when first asked for."""

    def __init__(self, config: dict[str, Any], validator: Validator, scales: Mapping[str, Any]):
        self.config, self.scale = config, config["scale"]
        self.datasets, self.strategies = (_checked(validator, name) for name in ("datasets", "strategies"))
        self.studies: dict[str, Study] = {}
        self.notes: list[str] = []
        self.tell: Callable[[str], None] = lambda note: None
        self.scales = list(scales)
        self._scale = scales[self.scale]
        self._validator = Validator(CONFIG / "schemas", {"dataset": list(self.datasets), "strategy": list(self.strategies)})
        self._resolver = Resolver(self.datasets, self.strategies, self._validator.check_part)
        self.cells, self.shards, self.data = self._resolver.cells, self._resolver.shards, self._resolver.data
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
            study = _study(name, text, self._scale, self._resolver, notes)
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
        rows = [row for experiment in self.study(study).experiments.values() for row in experiment.rows]
        wanted = _read_only(only, rows) if only and rows else {}
        return list(dict.fromkeys(row.digest for row in rows if all(str(row.labels.get(key)) in wanted[key] for key in wanted)))

    def look(self, study: str, experiment: str) -> Values:
        """What a figure or table needs to know beside the numbers: orders, titles, and each strategy's place among all strategies."""
        axes = self.study(study).experiments[experiment].axes
        places = {name: place for place, name in enumerate(self.strategies)}
        names = axes["strategy"]
        titles = {name: self.strategies[name]["title"] for name in names}
        return {"orders": axes, "styles": {name: places[name] for name in names}, "titles": titles}


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
    """The names of the study files."""
    return sorted(file.stem for file in (CONFIG / "studies").glob("*.yaml"))


def drawn_names(study: str) -> list[str]:
    """The figures, tables and claims of a study by name, without expanding it; none where its file cannot be read (loading it says why)."""
    try:
        content = read_yaml(study_file(study))
        return [*content.get("figures", {}), *content.get("tables", {}), *([CLAIMS_TABLE] if content.get("claims") else [])]
    except (UserError, AttributeError, TypeError):
        return []


def _checked(validator: Validator, name: str) -> dict[str, Any]:
    file = CONFIG / f"{name}.yaml"
    content: dict[str, Any] = read_yaml(file)
    validator.check(content, name, file)
    return content


def _study(name: str, text: Mapping[str, Any], scale: Mapping[str, Any], resolver: Resolver, notes: list[str]) -> Study:
    file = study_file(name)
    figures, tables = text.get("figures", {}), text.get("tables", {})
    if CLAIMS_TABLE in figures | tables:
        raise UserError(f"{file}: '{CLAIMS_TABLE}' is the table of the study's claims; call the figure or table otherwise")
    for twice in sorted(set(figures) & set(tables)):
        raise UserError(f"{file}: '{twice}' names a figure and a table; one of them must be called otherwise")
    experiments, matrix = {}, Matrix()
    for key, block in text["experiments"].items():
        where = f"{file}: experiments.{key}"
        axes = axis_values(block)
        fixed = text.get("settings", {}) | block.get("settings", {})
        cells = [fixed | combination for combination in combinations(block, where)]
        axes |= {column: list(dict.fromkeys(values.get(column) for values in cells)) for column in LABELS if column not in axes}
        mine = {drawn: spec for drawn, spec in (figures | tables).items() if spec["experiment"] == key}
        shown = [facets(spec, axes, cells, f"{file}: {drawn}", name) for drawn, spec in mine.items()]
        matrix.add(key, axes, cells)
        chosen = _seeds(cells, scale)
        if scale.get("thin"):
            chosen = thinned(chosen, shown)
        if len(chosen) < len(cells):
            notes.append(f"{name}.{key}: {len(chosen)} of {len(cells)} cells at this scale")
        experiments[key] = _experiment(chosen, axes, scale, resolver, where)
    for drawn, spec in (figures | tables).items():
        if spec["experiment"] not in experiments:
            raise UserError(f"{file}: {drawn}.experiment is '{spec['experiment']}'{suggest(spec['experiment'], experiments)}")
    claims = resolve(text.get("claims", {}), matrix, scale, name, str(file))
    return Study(name, text["title"], text.get("description", ""), experiments, figures, tables, claims)


def _seeds(cells: list[Values], scale: Mapping[str, Any]) -> list[Values]:
    if "seeds" not in scale:
        return cells
    seeds = list(dict.fromkeys(values["seed"] for values in cells))[: scale["seeds"]]
    return [values for values in cells if values["seed"] in seeds]


def _experiment(cells: list[Values], axes: dict[str, list[Any]], scale: Mapping[str, Any], resolver: Resolver, where: str) -> Experiment:
    rows: dict[str, Row] = {}
    columns = [*LABELS, *(column for column in axes if column not in LABELS)]
    for values in cells:
        needed_settings(values, where)
        digest = resolver.cell(scaled(NEUTRAL | values, scale), where)
        rows.setdefault(digest, Row({column: values.get(column) for column in columns}, digest))
    return Experiment(list(rows.values()), axes)


def _read_only(only: str, rows: list[Row]) -> dict[str, set[str]]:
    """`strategy=fedavg|loss,seed=0` as the values that each label may have."""
    known: dict[str, dict[str, None]] = {}
    for row in rows:
        for key, value in row.labels.items():
            known.setdefault(key, {})[str(value)] = None
    wanted = {}
    for part in only.split(","):
        key, _, values = part.strip().partition("=")
        if key not in known:
            raise UserError(f"only '{only}': '{key}' is no label of these cells{suggest(key, known)}")
        wanted[key] = set(values.split("|"))
        for value in sorted(wanted[key] - set(known[key])):
            raise UserError(f"only '{only}': no cell has {key} '{value}'{suggest(value, known[key])}")
    return wanted
