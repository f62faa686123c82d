"""Turn a cell's values into planned things: complete settings, digests, paths."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cohort.cell.evaluations import spelled_out
from cohort.cell.planned import Planned, digest_of
from cohort.cell.settings import (
    DEFAULTS,
    EVALUATION_PLANS,
    SHARD_KEYS,
    Settings,
    cell_identity,
    shard_identity,
)
from cohort.core.components import build, in_type
from cohort.core.errors import UserError
from cohort.core.paths import data_file, raw_file, record_file, shards_file
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.dataset_info import sample_identity, sample_info
from cohort.data.parsers import PARSERS, parser_name
from cohort.models import MODELS
from cohort.partition import parse_name
from cohort.partition.scheme import Scheme
from cohort.plan.axes import Values
from cohort.plan.checks import (
    check_cohort,
    check_evaluators,
    check_partition,
    check_procedure,
    check_shape,
)
from cohort.plan.located import located
from cohort.training.participation import parse_participation
from cohort.training.parts import PARTS, without_defaults
from cohort.training.procedures import parse_procedure
from cohort.training.schedules import parse_schedule

DEFAULT_PARTS = {"objective": {"name": "cross-entropy"}, "server": {"name": "average"}}
HINTS = typing.get_type_hints(Settings)
REQUIRED = [name for name, default in DEFAULTS.items() if default is dataclasses.MISSING]

Check = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
CHECKS: tuple[tuple[Check, tuple[str, ...]], ...] = (
    (check_shape, ("model", "augmentation", "dataset")),
    (check_cohort, ("strategy", "clients", "cohort", "reserve", "dataset", "samples")),
    (
        check_procedure,
        (
            *("strategy", "procedure", "clients", "cohort", "rounds", "schedule", "validation"),
            *("optimizer", "momentum", "participation", "holdout", *EVALUATION_PLANS[1:]),
        ),
    ),
    (check_evaluators, ("strategy", "procedure", "holdout", *EVALUATION_PLANS)),
)
"""Each check with the settings that it depends on, beside parameters of the strategy."""

SCHEME_KEYS = ("partition", "dataset", "samples", "clients", "validation")
"""The settings that `check_partition` depends on."""

COMPONENT_KEYS = (
    *("model", "augmentation", "procedure", "partition", "holdout", "schedule", "participation"),
)
"""The settings that science versions follow from, beside the strategy."""

Overrides = tuple[tuple[str, Any], ...]
"""Parameters of a strategy that a study changes: `("selector.buffer", 0.5)`."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Strategy:
    """A strategy's parts with every parameter, the same without defaults, and science versions."""

    parts: Values
    short: Values
    science: dict[str, int]


class Resolver:
    """Plans cells, and the shards and data that they need, each once.

    `check_part(spec, part)` validates a part of a strategy after a study changed its parameters.
    """

    def __init__(
        self,
        datasets: Mapping[str, Any],
        strategies: Mapping[str, Any],
        check_part: Callable[[Any, str], None],
    ):
        self.datasets, self.strategies, self._check_part = datasets, strategies, check_part
        self.data: dict[str, Planned] = {}
        self.shards: dict[str, Planned] = {}
        self.cells: dict[str, Planned] = {}
        self._cache: dict[tuple[Any, ...], Any] = {}

    def plan_cell(self, values: Values) -> str:
        """Plan one cell and everything that it needs; return its digest."""
        settings = _complete(values)
        overrides = tuple((key, value) for key, value in values.items() if "." in key)
        strategy = self._once(self._strategy, settings["strategy"], overrides)
        data = self._once(self._data, settings["dataset"])
        shards = self.plan_shards(settings)
        self._check(settings, strategy, overrides)
        science = strategy.science | self._once(
            _science, *(settings[key] for key in COMPONENT_KEYS)
        )
        digest = digest_of(cell_identity(settings, strategy.short, data.digest), science)
        if digest not in self.cells:
            generated = self.datasets[settings["dataset"]].get("generated")
            self.cells[digest] = Planned(
                path=record_file(settings, digest),
                digest=digest,
                settings=settings | strategy.parts | ({"generated": True} if generated else {}),
                science=science,
                inputs={"data": data.path, "shards": shards.path},
            )
        return digest

    def plan_shards(self, settings: Values) -> Planned:
        """Plan the shards of these settings; those that are missing take their defaults."""
        settings = DEFAULTS | settings
        return self._once(self._shards, *(settings[key] for key in SHARD_KEYS))

    def _once(self, make: Callable[..., T], *arguments: Any) -> T:
        """`make(*arguments)`, computed when it is first asked for."""
        key = (make.__name__, *arguments)
        if key not in self._cache:
            self._cache[key] = make(*arguments)
        value: T = self._cache[key]
        return value

    def _check(self, settings: Values, strategy: Strategy, overrides: Overrides) -> None:
        for check, keys in CHECKS:
            key = (check.__name__, overrides, *(settings[name] for name in keys))
            if key not in self._cache:
                check(settings | strategy.parts, self.datasets[settings["dataset"]])
                self._cache[key] = None

    def _strategy(self, name: str, overrides: Overrides) -> Strategy:
        strategy = Strategy({}, {}, {})
        for part, components in PARTS.items():
            spec = dict(self.strategies[name].get(part) or DEFAULT_PARTS[part])
            for key, value in overrides:
                owner, _, parameter = key.partition(".")
                if owner == part:
                    spec[parameter] = value
            with located(f"strategy {name}, {part}"):
                self._check_part(spec, part)
            short = without_defaults(part, spec)
            component = build(components, short)
            strategy.short[part] = short
            strategy.parts[part] = {"name": spec["name"]} | dataclasses.asdict(component)
            strategy.science[f"{part}:{spec['name']}"] = component.version()
        return strategy

    def _data(self, dataset: str) -> Planned:
        info = self.datasets[dataset]
        settings = {"dataset": dataset} | sample_info(info)
        science = {f"dataset:{dataset}": PARSERS[parser_name(dataset, info)].science}
        checksums = {name: checksum(file) for name, file in info["files"].items()}
        identity = sample_identity(dataset, info) | {"files": checksums}
        digest = digest_of(identity, science)
        raw = {name: raw_file(dataset, name) for name in info["files"]}
        planned = Planned(data_file(dataset, digest), digest, settings, science, raw)
        return self.data.setdefault(digest, planned)

    def _shards(self, *values: Any) -> Planned:
        settings = dict(zip(SHARD_KEYS, values, strict=True))
        data = self._once(self._data, settings["dataset"])
        scheme = self._once(self._scheme, *(settings[key] for key in SCHEME_KEYS))
        science = scheme.versions(settings["holdout"])
        digest = digest_of(shard_identity(settings, data.digest), science)
        planned = Planned(
            shards_file(settings, digest), digest, settings, science, {"data": data.path}
        )
        return self.shards.setdefault(digest, planned)

    def _scheme(self, *values: Any) -> Scheme:
        settings = dict(zip(SCHEME_KEYS, values, strict=True))
        return check_partition(settings, self.datasets[settings["dataset"]])


def check_required(values: Values) -> None:
    """Raise a UserError where a setting without default is missing."""
    for name in REQUIRED:
        if name not in values:
            raise UserError(f"no value for '{name}'; give it under settings or as an axis")


def _complete(values: Values) -> Values:
    """Every setting of a cell, in its own type."""
    settings = DEFAULTS | {
        key: in_type(HINTS[key], values[key]) for key in HINTS if values[key] != DEFAULTS[key]
    }
    for key in EVALUATION_PLANS:
        settings[key] = spelled_out(settings[key], settings["rounds"])
    return settings


def _science(
    model: str,
    augmentation: str,
    procedure: str,
    partition: str,
    holdout: float,
    schedule: str,
    participation: str,
) -> dict[str, int]:
    """The science versions of a cell's components, beside those of its strategy."""
    parsed = parse_procedure(procedure)
    return {
        f"model:{model}": MODELS[model].science,
        f"augmentation:{augmentation}": AUGMENTATIONS[augmentation].science,
        f"procedure:{parsed.name}": parsed.science_with(MODELS[model]),
        f"schedule:{schedule.partition('-')[0]}": parse_schedule(schedule).science,
        f"participation:{participation.partition('-')[0]}": parse_participation(
            participation
        ).science,
    } | parse_name(partition).versions(holdout)


def checksum(file: Mapping[str, Any]) -> str:
    """The checksum that identifies a raw file.

    A file behind a login may have none: then every version that a user provides counts as the same.
    """
    return file.get("sha256") or file.get("md5", "")
