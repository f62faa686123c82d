"""Turn a cell's values into planned things (complete settings, digests, paths), and reject settings
that cannot be trained together before any job starts."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from cohort import settings as cell_settings
from cohort.core import UserError, check_allowed, errors_at, paths, user_files
from cohort.core.components import Component, canonical, cast_to_type, explain_value_errors
from cohort.core.randomness import generator
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.parsers import DEFAULTS as DATA_DEFAULTS
from cohort.data.parsers import PARSERS, DatasetInfo, parser_name, sample_identity, sample_settings
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.needs import needs_of
from cohort.partition import Scheme, parse_partition
from cohort.plan.matrix import Scale, Values, scaled_values
from cohort.selection.selector import Allocating, Probing
from cohort.settings import DEFAULTS, SHARD_KEYS, PlannedFile, Settings, local_work
from cohort.training.cell import PARTS, Cell
from cohort.training.evaluators import EVALUATORS

MAX_MEMORY = 16e9  # bytes that a selector may take beside training
DEFAULT_PARTS = {"objective": {"name": "cross-entropy"}, "server": {"name": "average"}}
HINTS = typing.get_type_hints(Settings)
REQUIRED = [name for name, default in DEFAULTS.items() if default is dataclasses.MISSING]

Entries = Mapping[str, Any]
Overrides = tuple[tuple[str, Any], ...]
"""Parameters of a strategy that a study changes: `("selector.buffer", 0.5)`."""


class Resolver:
    """Plans cells, and the shards and data that they need, each once, by digest. `check_part(spec,
    part)` validates a part of a strategy after a study changed its parameters."""

    def __init__(self, datasets: Entries, strategies: Entries, check_part: Callable[..., None]):
        self.datasets, self.strategies, self._check_part = datasets, strategies, check_part
        self.data: dict[str, PlannedFile] = {}
        self.shards: dict[str, PlannedFile] = {}
        self.cells: dict[str, Cell] = {}
        self._template, self._parts = cache(self._make_template), cache(self._make_parts)
        self.plan_data, self._shards = cache(self._plan_data), cache(self._plan_shards)

    def plan_cell(self, values: Values, scale: Scale) -> Cell:
        """Plan the cell of these values at a scale, with its shards and data."""
        values = scaled_values(values, scale)
        changed = [key for key in HINTS if values[key] != DEFAULTS[key]]
        settings = DEFAULTS | {key: cast_to_type(HINTS[key], values[key]) for key in changed}
        for key in cell_settings.EVALUATION_PLANS:
            settings[key] = cell_settings.resolve_last(settings[key], settings["rounds"])
        overrides = tuple((key, value) for key, value in values.items() if "." in key)
        shards = self._shards(*(settings[key] for key in SHARD_KEYS))
        template, identity = self._template(overrides, *(settings | {"seed": 0}).values())
        digest = cell_settings.digest_of(identity | {"seed": settings["seed"]}, template.science)
        if digest not in self.cells:
            cell = self.cells[digest] = replace(
                template,
                settings=Settings(**settings),
                path=paths.record_file(settings, digest),
                digest=digest,
                inputs=template.inputs | {"shards": shards.path},
            )
            if cell.participation.goes_by_time:
                check_deadline(cell)
        return self.cells[digest]

    def _make_template(self, overrides: Overrides, *values: Any) -> tuple[Cell, dict[str, Any]]:
        """Check a cell that serves as the template for other seeds; return it and its identity."""
        settings = Settings(**dict(zip(DEFAULTS, values, strict=True)))
        info = self.datasets[settings.dataset]
        cell = Cell(
            settings=settings,
            inputs={"data": self.plan_data(settings.dataset).path},
            **self._parts(settings.strategy, overrides),
        )
        check_shape(cell, info)
        check_cohort(cell, info)
        check_procedure(cell)
        return replace(cell, science=_versions(cell)), cell.identity()

    def _make_parts(self, name: str, overrides: Overrides) -> dict[str, Any]:
        """Build the selector, objective and server rule of a strategy with these overrides."""
        parts = {}
        for part, components in PARTS.items():
            spec = dict(self.strategies[name].get(part) or DEFAULT_PARTS[part])
            keys = ((key.partition("."), value) for key, value in overrides)
            spec |= {parameter: value for (owner, _, parameter), value in keys if owner == part}
            with errors_at(f"strategy {name}, {part}"):
                self._check_part(spec, part)
            component = components[spec["name"]]
            parts[part] = component(**canonical(component, spec))
        return parts

    def _plan_data(self, dataset: str) -> PlannedFile:
        info = self.datasets[dataset]
        settings = {"dataset": dataset} | sample_settings(info)
        science = {f"dataset:{dataset}": PARSERS[parser_name(dataset, info)].science}
        # a file behind a login may have no checksum: every version that a user has is the same
        files = info["files"].items()
        checksums = {name: file.get("sha256") or file.get("md5", "") for name, file in files}
        identity = sample_identity(dataset, info) | {"files": checksums}
        digest = cell_settings.digest_of(identity, science)
        raw = {name: paths.raw_file(dataset, name) for name in info["files"]}
        planned = PlannedFile(paths.data_file(dataset, digest), digest, settings, science, raw)
        return self.data.setdefault(digest, planned)

    def _plan_shards(self, *values: Any) -> PlannedFile:
        settings = dict(zip(SHARD_KEYS, values, strict=True))
        data = self.plan_data(settings["dataset"])
        scheme = parse_partition(settings["partition"])
        check_partition(scheme, settings, self.datasets[settings["dataset"]])
        dealer = getattr(scheme, "base", scheme)  # of an overlap, who deals
        science = scheme.versions(settings["holdout"])
        science |= user_files.module_number(type(dealer).__module__)
        identity = cell_settings.shard_identity(settings, data.digest)
        digest = cell_settings.digest_of(identity, science)
        path = paths.shards_file(settings, digest)
        planned = PlannedFile(path, digest, settings, science, {"data": data.path})
        return self.shards.setdefault(digest, planned)


def _versions(cell: Cell) -> dict[str, int]:
    """The science versions of a cell's components. A cell that simulates time has that of its
    devices too, and 2 if the server evaluates models: in version 1, clients waited for it."""
    parts: dict[str, Component] = {part: getattr(cell, part) for part in PARTS}
    model, augmentation = cell.settings.model, cell.settings.augmentation
    versions = {
        **{f"{part}:{component.name}": component.version() for part, component in parts.items()},
        f"model:{model}": MODELS[model].science,
        f"augmentation:{augmentation}": AUGMENTATIONS[augmentation].science,
        f"procedure:{cell.procedure.name}": cell.procedure.science_with(MODELS[model]),
        f"schedule:{cell.schedule.name}": cell.schedule.science,
        f"participation:{cell.participation.name}": cell.participation.science,
        **cell.partition.versions(cell.settings.holdout),
    }
    if cell.settings.availability != DEFAULTS["availability"]:
        versions[f"availability:{cell.availability.name}"] = cell.availability.version()
    if cell.settings.client_devices != DEFAULTS["client_devices"]:
        by_server = any(need.reserved for need in needs_of(cell.selector))
        versions[f"devices:{cell.client_devices.name}"] = cell.client_devices.version()
        versions["server evaluations"] = 1 + by_server
    return versions


def check_partition(scheme: Scheme, settings: Mapping[str, Any], info: DatasetInfo) -> None:
    """Reject a scheme that cannot deal this data set to so many clients."""
    dataset, samples, validation = (settings[key] for key in ("dataset", "samples", "validation"))
    if settings["holdout"] and not scheme.exact:
        raise UserError(f"holdout: clients of '{scheme}' would train on what others hold out")
    rest = scaled_count(info["train"], samples) - scaled_count(validation, samples)
    if rest < 1:
        has = f"{dataset} has only {info['train']} training samples to share"
        raise UserError(f"validation is {validation}, but {has}")
    with explain_value_errors(f"partition '{scheme}' of {dataset} is impossible: "):
        scheme.scaled(samples).check(info["classes"], settings["clients"], rest, info.get("groups"))


def check_shape(cell: Cell, info: DatasetInfo) -> None:
    """Reject samples that the model or augmentation cannot take, or a batch larger than all."""
    settings, kind = cell.settings, info.get("kind", DATA_DEFAULTS["kind"])
    model, augmentation = MODELS[settings.model](), AUGMENTATIONS[settings.augmentation]()
    for part, component in (("model", model), ("augmentation", augmentation)):
        with explain_value_errors(f"{part} '{component.name}' cannot take {settings.dataset}: "):
            if kind not in component.kinds:
                raise ValueError(f"takes {' or '.join(component.kinds)}, not {kind}")
            component.check(tuple(info["shape"]))
    if settings.batch > info["train"]:
        has = f"{settings.dataset} has only {info['train']} training samples"
        raise UserError(f"batch is {settings.batch}, but {has}; this many make a full batch")


def check_cohort(cell: Cell, info: DatasetInfo) -> None:
    """Reject a cohort larger than the clients, a reserve that is lacking or leaves no test samples,
    and a selector that cannot select this cohort or would need too much memory."""
    settings, selector = cell.settings, cell.selector
    strategy = f"strategy '{settings.strategy}'"
    clients, cohort, reserve = settings.clients, settings.cohort, settings.reserve
    reserved, classes = scaled_count(reserve, settings.samples), info["classes"]
    test = scaled_count(info["test"], settings.samples)
    if cohort > clients:
        raise UserError(f"cohort is {cohort}, but there are only {clients} clients")
    if reserved >= test:
        has = f"{settings.dataset} has only {test} test samples, of which some must be left"
        raise UserError(f"reserve is {reserve}, but {has}")
    if not reserve and any(need.reserved for need in needs_of(selector)):
        raise UserError(f"{strategy} evaluates reserved samples, so reserve must be at least 1")
    with explain_value_errors(f"{strategy} is impossible: "):
        selector.check(clients, cell.participation.invited(cohort, clients))
    if (memory := selector.memory(reserved, classes, clients)) > MAX_MEMORY:
        wanted = f"{strategy} would need {memory / 1e9:.0f} GB of memory for {clients} clients"
        amounts = f"{reserved} reserved samples and {classes} classes"
        raise UserError(f"{wanted}, {amounts}; {MAX_MEMORY / 1e9:.0f} are allowed: reduce reserve")


def check_deadline(cell: Cell) -> None:
    """Reject a deadline that no device of this seed meets."""
    settings = cell.settings
    speeds = cell.client_devices.speeds(settings.clients, generator(settings.seed, "devices"))
    if speeds and not isinstance(cell.selector, Allocating | Probing):
        with explain_value_errors(f"participation '{settings.participation}': "):
            # without the time of transfers, which a run knows
            cell.participation.check(local_work(settings.J)[0] * settings.batch / speeds.samples)


def check_procedure(cell: Cell) -> None:
    """Reject settings that the procedure or optimizer does not take, and impossible evaluators."""
    settings, devices = cell.settings, cell.settings.client_devices
    if settings.optimizer == "adam" and settings.momentum:
        raise UserError(f"momentum is {settings.momentum:g}, but Adam takes none; leave it out")
    if devices != DEFAULTS["client_devices"] and not cell.procedure.simulates_time:
        why = f"the procedure '{settings.procedure}' simulates no time; leave it out"
        raise UserError(f"client_devices is '{devices}', but {why}")
    if cell.participation.goes_by_time and devices == DEFAULTS["client_devices"]:
        raise UserError(f"'{settings.participation}' goes by simulated time: set client_devices")
    with explain_value_errors(f"availability '{settings.availability}' "):
        cell.availability.check(settings.clients)
    with explain_value_errors(f"procedure '{settings.procedure}' "):
        cell.procedure.check(cell)
    named = [name for name, kind in EVALUATORS.items() if kind.setting == "evaluators"]
    for name in cell_settings.plans_by_name(settings.evaluators):
        check_allowed(name, named, f"evaluators: '{name}' is not known")
    for evaluator in (kind() for kind in EVALUATORS.values()):
        if evaluator.plan(cell):
            with explain_value_errors(""):
                evaluator.check(cell)
