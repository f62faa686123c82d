"""Turn a cell's values into planned things (complete settings, digests, paths), and reject settings
that cannot be trained together before any job starts."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from cohort.core.components import Component, canonical, cast_to_type
from cohort.core.errors import UserError, errors_at, refusals_as_errors, suggest
from cohort.core.paths import data_file, raw_file, record_file, shards_file
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.parsers import DEFAULTS as DATA_DEFAULTS
from cohort.data.parsers import PARSERS, DatasetInfo, parser_name, sample_identity, sample_info
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.needs import needs_of
from cohort.partition import Scheme, parse_partition
from cohort.plan.axes import Values
from cohort.plan.scale import Scale, scaled_values
from cohort.settings import (
    DEFAULTS,
    EVALUATION_PLANS,
    SHARD_KEYS,
    PlannedFile,
    Settings,
    digest_of,
    plans_by_name,
    resolve_last,
    shard_identity,
)
from cohort.training.cell import PARTS, Cell
from cohort.training.evaluators import EVALUATORS

MOST_MEMORY = 16e9  # bytes that a selector may take beside training
DEFAULT_PARTS = {"objective": {"name": "cross-entropy"}, "server": {"name": "average"}}
HINTS = typing.get_type_hints(Settings)
REQUIRED = [name for name, default in DEFAULTS.items() if default is dataclasses.MISSING]

SCHEME_KEYS = ("partition", "dataset", "samples", "clients", "validation")
"""The settings that `check_partition` depends on."""

Overrides = tuple[tuple[str, Any], ...]
"""Parameters of a strategy that a study changes: `("selector.buffer", 0.5)`."""


class Resolver:
    """Plans cells, and the shards and data that they need, each once; it holds them by digest.

    `check_part(spec, part)` validates a part of a strategy after a study changed its parameters.
    """

    def __init__(
        self,
        datasets: Mapping[str, Any],
        strategies: Mapping[str, Any],
        check_part: Callable[[Any, str], None],
    ):
        self.datasets, self.strategies, self._check_part = datasets, strategies, check_part
        self.data: dict[str, PlannedFile] = {}
        self.shards: dict[str, PlannedFile] = {}
        self.cells: dict[str, Cell] = {}
        self._template = cache(self._make_template)
        self._strategy_parts = cache(self._make_parts)
        self._data, self._shards = cache(self._plan_data), cache(self._plan_shards)
        self._scheme = cache(self._parse_scheme)

    def plan_cell(self, values: Values, scale: Scale) -> Cell:
        """Plan the cell of these values at a scale, with its shards and data."""
        values = scaled_values(values, scale)
        settings = DEFAULTS | {
            key: cast_to_type(kind, values[key])
            for key, kind in HINTS.items()
            if values[key] != DEFAULTS[key]
        }
        for key in EVALUATION_PLANS:
            settings[key] = resolve_last(settings[key], settings["rounds"])
        overrides = tuple((key, value) for key, value in values.items() if "." in key)
        shards, seed = self.plan_shards(settings), settings["seed"]
        template, identity = self._template(overrides, *(settings | {"seed": 0}).values())
        digest = digest_of(identity | {"seed": seed}, template.science)
        if digest not in self.cells:
            self.cells[digest] = replace(
                template,
                settings=Settings(**settings),
                path=record_file(settings, digest),
                digest=digest,
                inputs=template.inputs | {"shards": shards.path},
            )
        return self.cells[digest]

    def plan_shards(self, settings: Values) -> PlannedFile:
        """Plan the shards of these settings; those that are missing take their defaults."""
        settings = DEFAULTS | settings
        return self._shards(*(settings[key] for key in SHARD_KEYS))

    def scheme(self, settings: Values) -> Scheme:
        """The partition scheme of these settings, checked."""
        return self._scheme(*(settings[key] for key in SCHEME_KEYS))

    def _make_template(self, overrides: Overrides, *values: Any) -> tuple[Cell, dict[str, Any]]:
        """A checked cell, of which those of other seeds are copies, and its identity. `values` are
        those of all settings in order."""
        settings = Settings(**dict(zip(DEFAULTS, values, strict=True)))
        info = self.datasets[settings.dataset]
        cell = Cell(
            settings=settings,
            generated=info.get("generated", False),
            inputs={"data": self._data(settings.dataset).path},
            **self._strategy_parts(settings.strategy, overrides),
        )
        for check in (check_shape, check_cohort, check_procedure, check_evaluators):
            check(cell, info)
        return replace(cell, science=_versions(cell)), cell.identity()

    def _make_parts(self, name: str, overrides: Overrides) -> dict[str, Any]:
        """Build the selector, objective and server rule of a strategy with these overrides."""
        parts = {}
        for part, components in PARTS.items():
            spec = dict(self.strategies[name].get(part) or DEFAULT_PARTS[part])
            for key, value in overrides:
                owner, _, parameter = key.partition(".")
                if owner == part:
                    spec[parameter] = value
            with errors_at(f"strategy {name}, {part}"):
                self._check_part(spec, part)
            component = components[spec["name"]]
            parts[part] = component(**canonical(component, spec))
        return parts

    def _plan_data(self, dataset: str) -> PlannedFile:
        info = self.datasets[dataset]
        settings = {"dataset": dataset} | sample_info(info)
        science = {f"dataset:{dataset}": PARSERS[parser_name(dataset, info)].science}
        # a file behind a login may have no checksum: every version that a user has is the same
        checksums = {
            name: file.get("sha256") or file.get("md5", "") for name, file in info["files"].items()
        }
        identity = sample_identity(dataset, info) | {"files": checksums}
        digest = digest_of(identity, science)
        raw = {name: raw_file(dataset, name) for name in info["files"]}
        planned = PlannedFile(data_file(dataset, digest), digest, settings, science, raw)
        return self.data.setdefault(digest, planned)

    def _plan_shards(self, *values: Any) -> PlannedFile:
        settings = dict(zip(SHARD_KEYS, values, strict=True))
        data = self._data(settings["dataset"])
        science = self.scheme(settings).versions(settings["holdout"])
        digest = digest_of(shard_identity(settings, data.digest), science)
        planned = PlannedFile(
            shards_file(settings, digest), digest, settings, science, {"data": data.path}
        )
        return self.shards.setdefault(digest, planned)

    def _parse_scheme(self, *values: Any) -> Scheme:
        settings = dict(zip(SCHEME_KEYS, values, strict=True))
        scheme = parse_partition(settings["partition"])
        check_partition(scheme, settings, self.datasets[settings["dataset"]])
        return scheme


def check_required(values: Values) -> None:
    """Raise a UserError where a setting without default is missing."""
    for name in REQUIRED:
        if name not in values:
            raise UserError(f"no value for '{name}'; give it under settings or as an axis")


def _versions(cell: Cell) -> dict[str, int]:
    """The science versions of a cell's components and, if it simulates time, of its devices, and 2
    where the server evaluates models, for which clients were once made to wait."""
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
    if cell.settings.client_devices != DEFAULTS["client_devices"]:
        by_server = any(need.reserved for need in needs_of(cell.selector))
        versions[f"devices:{cell.client_devices.name}"] = cell.client_devices.version()
        versions["server evaluations"] = 1 + by_server
    return versions


def check_partition(scheme: Scheme, settings: Mapping[str, Any], info: DatasetInfo) -> None:
    """Reject a scheme that cannot deal this data set to so many clients."""
    dataset, samples, validation = (settings[key] for key in ("dataset", "samples", "validation"))
    left = scaled_count(info["train"], samples) - scaled_count(validation, samples)
    if left < 1:
        raise UserError(
            f"validation is {validation}, but {dataset} has only {info['train']} "
            "training samples to share"
        )
    with refusals_as_errors(f"partition '{scheme}' of {dataset} is impossible: "):
        scheme.scaled(samples).check(info["classes"], settings["clients"], left, info.get("groups"))


def check_shape(cell: Cell, info: DatasetInfo) -> None:
    """Reject a model or augmentation that does not take samples of this kind and shape, and a batch
    that no client can fill."""
    settings, kind = cell.settings, info.get("kind", DATA_DEFAULTS["kind"])
    model, augmentation = MODELS[settings.model](), AUGMENTATIONS[settings.augmentation]()
    for part, component in (("model", model), ("augmentation", augmentation)):
        with refusals_as_errors(f"{part} '{component.name}' cannot take {settings.dataset}: "):
            if kind not in component.kinds:
                raise ValueError(f"takes {' or '.join(component.kinds)}, not {kind}")
            component.check(tuple(info["shape"]))
    if settings.batch > info["train"]:
        raise UserError(
            f"batch is {settings.batch}, but {settings.dataset} has only {info['train']} training "
            "samples; this many make every batch a full one"
        )


def check_cohort(cell: Cell, info: DatasetInfo) -> None:
    """Reject more clients in the cohort than there are, a reserve that leaves no test samples or is
    lacking where the strategy needs it, or a selector that cannot select this cohort or would need
    too much memory."""
    settings, selector = cell.settings, cell.selector
    clients, cohort = settings.clients, settings.cohort
    reserved = scaled_count(settings.reserve, settings.samples)
    test, classes = scaled_count(info["test"], settings.samples), info["classes"]
    if cohort > clients:
        raise UserError(f"cohort is {cohort}, but there are only {clients} clients")
    if reserved >= test:
        raise UserError(
            f"reserve is {settings.reserve}, but {settings.dataset} has only {test} test samples, "
            "of which some must be left"
        )
    if any(need.reserved for need in needs_of(selector)) and settings.reserve == 0:
        raise UserError(
            f"strategy '{settings.strategy}' evaluates reserved samples, so reserve must be at "
            "least 1"
        )
    with refusals_as_errors(f"strategy '{settings.strategy}' is impossible: "):
        selector.check(clients, cohort)
    if (memory := selector.memory(reserved, classes, clients)) > MOST_MEMORY:
        raise UserError(
            f"strategy '{settings.strategy}' would need {memory / 1e9:.0f} GB of memory for "
            f"{clients} clients, {reserved} reserved samples and {classes} classes, more than the "
            f"{MOST_MEMORY / 1e9:.0f} GB that a selector may take; reduce reserve"
        )


def check_procedure(cell: Cell, info: DatasetInfo) -> None:
    """Reject settings that the procedure, the participation or the optimizer does not take."""
    settings = cell.settings
    if settings.optimizer == "adam" and settings.momentum:
        raise UserError(f"momentum is {settings.momentum:g}, but Adam takes none; leave it out")
    if settings.client_devices != DEFAULTS["client_devices"] and not cell.procedure.simulates_time:
        raise UserError(
            f"client_devices is '{settings.client_devices}', but the procedure "
            f"'{settings.procedure}' simulates no time; leave it out"
        )
    with refusals_as_errors(f"procedure '{settings.procedure}' "):
        cell.procedure.check(cell)


def check_evaluators(cell: Cell, info: DatasetInfo) -> None:
    """Reject evaluators that are unknown, or that cannot evaluate the cell's run."""
    named = [name for name, kind in EVALUATORS.items() if kind.setting == "evaluators"]
    for name in plans_by_name(cell.settings.evaluators):
        if name not in named:
            raise UserError(f"evaluators: '{name}' is not known{suggest(name, named)}")
    for evaluator in (kind() for kind in EVALUATORS.values()):
        if evaluator.plan(cell):
            with refusals_as_errors(""):
                evaluator.check(cell)
