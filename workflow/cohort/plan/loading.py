"""Load the config and plan the cells of its studies: one `load` for Snakemake and the command line.
It reads YAML files, and looks whether data sets behind a login are available."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cohort.core import UserError, check_allowed, counted, errors_at, user_files
from cohort.core.paths import CLAIMS_TABLE, Layout
from cohort.core.shipped import CONFIG, CONFIG_FILE, ROOT, shipped
from cohort.data.parsers import PARSERS, DatasetInfo, parser_name
from cohort.data.raw import check_mirror, files_in_mirror
from cohort.plan.expansion import Expansion, drawn_specs, extended_experiments
from cohort.plan.resolution import Resolver
from cohort.plan.schemas import Validator
from cohort.plan.study import Row, Study, check_only, is_wanted, parse_only
from cohort.plan.yaml_files import read_yaml
from cohort.results.series import FULL
from cohort.training.cell import Cell

STUDIES = CONFIG / "studies"
DATASET = r"[a-z][a-z0-9-]{0,60}"  # the form of the name of a data set, which is a part of paths
WORD = r"[a-z][a-z0-9_]{0,60}"  # the form of the names of experiments, figures and tables
RULES = (
    *("all", "collect", "deal", "download", "draw", "index", "judge", "prepare", "report"),
    *("tabulate", "train", "unknown"),
)
"""Targets and rules of the pipeline: no study can have their names."""
STUDY = rf"(?!(?:{'|'.join(RULES)})$){WORD}"  # the form of the names of studies


class Plan:
    """The cells, shards and data of studies at a scale, by digest. A study is expanded when it is
    first asked for; `notes` say what was left out and why, and `on_note` is called with each."""

    def __init__(self, config: dict[str, Any], scales: Mapping[str, Any], validator: Validator):
        self.config, self.scale, self.scales = config, config["scale"], list(scales)
        self.layout, self.previews = Layout(self.scale), Layout(self.scale, partial=True)
        self.datasets: dict[str, DatasetInfo] = _read_entries("datasets", validator)
        self.strategies = _read_entries("strategies", validator)
        self.studies: dict[str, Study] = {}
        self.notes: list[str] = []
        self.on_note: Callable[[str], None] = lambda note: None
        self._default = scales[self.scale]
        self._contents: dict[str, dict[str, Any]] = {}
        names = {"dataset": list(self.datasets), "strategy": list(self.strategies)}
        self.validator = Validator(names | {"scale": [name for name in scales if name != FULL]})
        self._resolver = Resolver(self.datasets, self.strategies, self.validator.check_part)
        self.cells, self.shards = self._resolver.cells, self._resolver.shards
        self.data = self._resolver.data
        self._has_data = functools.cache(self._find_data)
        if mirror := config.get("data_mirror"):
            with errors_at("config/config.yaml or --config"):
                check_mirror(mirror)
        self._only = parse_only(config.get("only", ""))

    @property
    def listed(self) -> list[str]:
        """The studies that the config lists."""
        studies = self.config["studies"]
        return studies if isinstance(studies, list) else [studies]

    def study(self, name: str) -> Study:
        """The study expanded at the config's scale. Raise UserError for a mistake in its file."""
        if name not in self.studies:
            study, notes = self._expanded(study_file(name), self._content(name))
            study, skipped = self._runnable(study)
            self.studies[name] = replace(study, notes=[*notes, *skipped])
            for note in self.studies[name].notes:
                self.notes.append(note)
                self.on_note(note)
        return self.studies[name]

    def check(self, file: Path, content: dict[str, Any]) -> None:
        """Raise a UserError if a study of this content, which `file` may hold later, is invalid."""
        with errors_at(file):
            self.validator.check(content, "study")
        self._expanded(file, content)

    def add(self, name: str, content: dict[str, Any]) -> None:
        """Let a study of this name have this content, which `check` accepts, without a file."""
        self._contents[name] = content

    def _expanded(self, file: Path, content: dict[str, Any]) -> tuple[Study, list[str]]:
        """Expand a study with all of its cells; return it with notes on what the scale left out."""
        with errors_at(file):
            extended = extended_experiments(content, self._content, all_studies())
        scale, seeds = (self.scale, self._default), self.config.get("seeds", 0)
        return Expansion(file, content, *scale, seeds, self._resolver, extended).study()

    def _runnable(self, study: Study) -> tuple[Study, list[str]]:
        """Split off cells without a record that cannot be run here: return the study without them
        and what can no longer be drawn, and a note on each experiment that lost cells."""
        kept, skipped, notes = {}, {}, list[str]()
        for name, experiment in study.experiments.items():
            lacks = {row.digest: self._lack(self.cells[row.digest]) for row in experiment.rows}
            rows = [row for row in experiment.rows if not lacks[row.digest]]
            if rows:
                kept[name] = replace(experiment, rows=rows)
            if reasons := list(filter(None, lacks.values())):
                lost = [row for row in experiment.rows if lacks[row.digest]]
                skipped[name] = [(row, lacks[row.digest]) for row in lost]
                specs = study.drawn_items().items()
                gone = [key for key, spec in specs if spec["experiment"] == name and not rows]
                undrawn = f" ({', '.join(gone)} cannot be drawn)" if gone else ""
                where = f"{study.name}.{name}: {len(reasons)} of {counted(len(lacks), 'cell')}"
                notes.append(f"{where} skipped: {'; '.join(dict.fromkeys(reasons))}{undrawn}")
        figures = {key: spec for key, spec in study.figures.items() if spec["experiment"] in kept}
        tables = {key: spec for key, spec in study.tables.items() if spec["experiment"] in kept}
        fields: dict[str, Any] = {"experiments": kept, "skipped": skipped}
        return replace(study, figures=figures, tables=tables, **fields), notes

    def _lack(self, cell: Cell) -> str:
        """What a cell lacks to run here: data behind a login, or a package that its procedure
        needs; empty if it lacks nothing or has a record."""
        dataset, lacks = cell.settings.dataset, ""
        if not self._has_data(dataset):
            logins = (file.get("login") for file in self.datasets[dataset]["files"].values())
            pages = " and ".join(dict.fromkeys(filter(None, logins)))
            lacks = f"{dataset} is behind a login ({pages}); set data_mirror"
        if package := cell.procedure.missing_package():
            install = f"which is not installed; pip install {package}"
            lacks = f"procedure '{cell.procedure}' needs the package {package}, {install}"
        return lacks if lacks and not Path(cell.path).exists() else ""

    def _find_data(self, dataset: str) -> bool:
        """Whether all files of a data set that are behind a login are here, or what is made of
        them, or a way to them."""
        data, mirror = self._resolver.plan_data(dataset), self.config.get("data_mirror", "")
        files = self.datasets[dataset]["files"].items()
        names = [name for name, file in files if "login" in file]
        missing = (name for name in names if not Path(data.inputs[name]).exists())
        return Path(data.path).exists() or all(files_in_mirror(mirror, {n}) for n in missing)

    def _content(self, name: str) -> dict[str, Any]:
        """Read a study's file, validated against the schema; once for each study."""
        if name not in self._contents:
            self._contents[name] = self.validator.read(study_file(name), "study")
        return self._contents[name]

    def rows(self, names: Iterable[str]) -> dict[tuple[str, str], list[Row]]:
        """The cells that `only` allows, by study and experiment, those without any left out. Raise
        a UserError where `only` names a label or value that none of these studies has."""
        expanded = [self.study(name) for name in names]
        check_only(self._only, expanded)
        by_experiment = {}
        for study in expanded:
            for name, experiment in study.experiments.items():
                wanted = (row for row in experiment.rows if is_wanted(row, self._only))
                by_experiment[study.name, name] = list({row.digest: row for row in wanted}.values())
        return {key: rows for key, rows in by_experiment.items() if rows or not self._only}

    def skipped(self, study: str, experiment: str) -> list[tuple[Row, str]]:
        """The cells that cannot be run here, of those that `only` allows, each with the reason."""
        skipped = self.study(study).skipped.get(experiment, [])
        wanted = ((row, reason) for row, reason in skipped if is_wanted(row, self._only))
        return list({row.digest: (row, reason) for row, reason in wanted}.values())

    def digests(self, *names: str) -> list[str]:
        """The digests of these studies' cells that the config's `only` allows, each once."""
        digests = (row.digest for rows in self.rows(names).values() for row in rows)
        return list(dict.fromkeys(digests))

    def dataset_info(self, cell: Cell) -> DatasetInfo:
        """What config/datasets.yaml says of a cell's data set."""
        return self.datasets[cell.settings.dataset]


def load(overrides: Mapping[str, Any] | None = None, *, whole: bool = False) -> Plan:
    """Plan config/config.yaml with some keys overridden, its listed studies expanded."""
    plan = unexpanded_plan(overrides, whole=whole)
    for name in plan.listed:
        plan.study(name)
    return plan


def unexpanded_plan(overrides: Mapping[str, Any] | None = None, *, whole: bool = False) -> Plan:
    """Plan as `load` does, without expanding any study yet. `whole` overrides are all of the
    config: config.yaml may be that of a workflow of which Cohort is a module."""
    config: Any = {}
    if not whole:
        if not CONFIG_FILE.exists():
            hint = "go to the folder with the Snakefile, or make one with cohort init FOLDER"
            raise UserError(f"{CONFIG_FILE} does not exist: {hint}")
        config = read_yaml(CONFIG_FILE)
        if isinstance(config, dict):  # perhaps of a workflow of which Cohort is a module
            config = config.get("cohort", config)
        if not isinstance(config, dict):
            raise UserError(f"{CONFIG_FILE}: must be a mapping, as in config/README.md")
    config = read_yaml(ROOT / CONFIG_FILE) | config | dict(overrides or {})
    scales = read_yaml(scales_file := shipped(CONFIG / "scales.yaml"))
    # Of all data sets, built-in ones and the user's, whether or not they are valid.
    files = (shipped(CONFIG / "datasets.yaml"), user_files.folder() / "datasets.yaml")
    contents = (read_yaml(file) for file in files if file.exists())
    datasets = [str(key) for content in contents if isinstance(content, dict) for key in content]
    names = {"study": all_studies(), "scale": list(scales or ()), "dataset": datasets}
    validator = Validator(names)
    with errors_at(scales_file):
        validator.check(scales, "scales")
    with errors_at(f"{CONFIG_FILE} or --config"):
        validator.check(config, "config")
    return Plan(config, scales, validator)


def study_file(name: str) -> Path:
    """The path of a study's file, among the built-in ones or the user's."""
    file = shipped(STUDIES) / f"{name}.yaml"
    user_file = user_files.folder() / "studies" / file.name
    if file.exists() and user_file.exists():
        raise UserError(f"{user_file}: {file} has that name already; rename your study")
    return user_file if user_file.exists() else file


def all_studies() -> list[str]:
    """The names of all studies; UserError for an impossible one. Hidden files do not count."""
    folders = (shipped(STUDIES), user_files.folder() / "studies")
    files = [file for folder in folders for file in sorted(folder.glob("[A-Za-z0-9_]*.y*ml"))]
    for file in files:
        if not re.fullmatch(STUDY, file.stem) or file.suffix != ".yaml":
            form = "of small letters, digits and _, begins with a letter, and is not that of a rule"
            raise UserError(f"{file}: the name of a study is {form}, its file .yaml; rename it")
    return sorted({file.stem for file in files})


def drawn_names(study: str) -> list[str]:
    """The names of a study's figures, tables and table of claims, without expanding it.
    Empty where its file cannot be read: expanding it says why."""

    def read(name: str) -> Any:
        return read_yaml(study_file(name))

    try:
        content = read(study)
        figures, tables = drawn_specs(content, extended_experiments(content, read, all_studies()))
        names = [*figures, *tables, *([CLAIMS_TABLE] if content.get("claims") else [])]
        return [name for name in dict.fromkeys(names) if re.fullmatch(WORD, name)]
    except (UserError, AttributeError, TypeError, KeyError):
        return []


def require_study(name: str) -> str:
    """Return the name unchanged. Raise UserError if no study has it."""
    check_allowed(name, all_studies(), f"there is no study '{name}'")
    return name


def _read_entries(name: str, validator: Validator) -> dict[str, Any]:
    """Read the entries of config/{name}.yaml, then those of the user's file of that name, if any.
    Raise a UserError where one of the user's has the name of a built-in one."""
    file = shipped(CONFIG / f"{name}.yaml")
    user_file = user_files.folder() / file.name
    entries, added = validator.read(file, name), {}
    if user_file.exists() and read_yaml(user_file):
        added = validator.read(user_file, name)
    if taken := sorted(entries.keys() & added.keys()):
        raise UserError(f"{user_file}: {taken[0]} is in {file} already; give yours another name")
    entries |= added
    if name == "datasets":
        for key, entry in entries.items():
            parser, where = parser_name(key, entry), user_file if key in added else file
            problem = f"{where}: {key}.parser is '{parser}', which is not known"
            check_allowed(parser, PARSERS, problem)
    return entries
