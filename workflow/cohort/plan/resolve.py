"""From an experiment's values to planned cells: strategies resolved, combinations checked, digests made."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

from cohort.cell.evaluations import spelled_out
from cohort.cell.planned import Planned, digest_of
from cohort.cell.settings import EVALUATION_PLANS, SHARD_KEYS, Settings
from cohort.core.components import build, canonical, in_type
from cohort.core.errors import UserError
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.facts import USUAL, given
from cohort.data.parsers import PARSERS
from cohort.data.sampling import scaled_count
from cohort.models import MODELS
from cohort.needs import NEEDS
from cohort.partition import parse_name
from cohort.plan.expand import Values
from cohort.plan.validation import PARTS
from cohort.selection import SELECTORS
from cohort.training.participation import parse_participation
from cohort.training.procedures import parse_procedure
from cohort.training.schedules import parse_schedule

DEFAULT_PARTS = {"objective": {"name": "cross-entropy"}, "server": {"name": "average"}}
HINTS = typing.get_type_hints(Settings)
NEUTRAL: Values = {field.name: field.default for field in dataclasses.fields(Settings)}
REQUIRED = [name for name, default in NEUTRAL.items() if default is dataclasses.MISSING]
PROCEDURE_KEYS = (
    "procedure",
    "clients",
    "cohort",
    "rounds",
    "schedule",
    "validation",
    "optimizer",
    "momentum",
    "participation",
)
Check = Callable[[Any, str, str], None]


class Resolver:
    """Makes planned things, each once. `check` validates a part of a strategy after an axis has changed a parameter of it."""

    def __init__(self, datasets: Mapping[str, Any], strategies: Mapping[str, Any], check: Check):
        self.datasets, self.strategies, self.check = datasets, strategies, check
        self.data: dict[str, Planned] = {}
        self.shards: dict[str, Planned] = {}
        self.cells: dict[str, Planned] = {}
        self._known: dict[Any, Any] = {}

    def cell(self, values: Values, where: str) -> str:
        """Plan one cell and everything that it needs; its digest."""
        settings = NEUTRAL | {
            key: in_type(HINTS[key], values[key]) for key in HINTS if values[key] != NEUTRAL[key]
        }
        for key in EVALUATION_PLANS:
            settings[key] = spelled_out(settings[key], settings["rounds"])
        overrides = tuple((key, value) for key, value in values.items() if "." in key)
        parts, short, science = self._once(
            ("strategy", settings["strategy"], overrides), self._strategy, where
        )
        data = self._once(("data", settings["dataset"]), self._data, where)
        dealt = self.dealt(settings, where)
        self._once(
            ("shape", *(settings[key] for key in ("model", "augmentation", "dataset"))),
            self._check_shape,
            where,
        )
        sizes = (settings[key] for key in ("clients", "cohort", "reserve", "dataset", "samples"))
        self._once(("cohort", settings["strategy"], overrides, *sizes), self._check_cohort, where)
        followed = (settings[key] for key in PROCEDURE_KEYS)
        self._once(
            ("procedure", settings["strategy"], overrides, *followed), self._check_procedure, where
        )
        named = (
            settings[key]
            for key in (
                "model",
                "augmentation",
                "procedure",
                "partition",
                "schedule",
                "participation",
            )
        )
        science = science | self._once(("science", *named), self._science, where)
        identity = (
            {key: value for key, value in settings.items() if value != NEUTRAL[key]}
            | short
            | {"data": data.digest}
        )
        digest = digest_of(identity, science)
        if digest not in self.cells:
            folder = "/".join(
                settings[key] for key in ("dataset", "model", "partition", "J", "strategy")
            )
            self.cells[digest] = Planned(
                path=f"results/cells/{folder}/seed{settings['seed']}-{digest}.h5",
                digest=digest,
                settings=settings
                | parts
                | (
                    {"generated": True}
                    if self.datasets[settings["dataset"]].get("generated")
                    else {}
                ),
                science=science,
                inputs={"data": data.path, "shards": dealt.path},
            )
        return digest

    def dealt(self, settings: Values, where: str) -> Planned:
        """Plan the shards of these settings."""
        settings = NEUTRAL | settings
        return self._once(("shards", *(settings[key] for key in SHARD_KEYS)), self._shards, where)

    def _once(self, key: tuple[Any, ...], make: Callable[..., Any], where: str) -> Any:
        if key not in self._known:
            self._known[key] = make(where, *key[1:])
        return self._known[key]

    def _strategy(
        self, where: str, name: str, overrides: tuple[tuple[str, Any], ...]
    ) -> tuple[Values, Values, dict[str, int]]:
        """The parts of a strategy with every parameter, the same without those at their defaults, and their science versions."""
        parts, short, science = {}, {}, {}
        for part, components in PARTS.items():
            spec = dict(self.strategies[name].get(part) or DEFAULT_PARTS[part])
            spec |= {
                key.partition(".")[2]: value
                for key, value in overrides
                if key.startswith(f"{part}.")
            }
            self.check(spec, part, f"{where}, strategy {name}, {part}")
            component = components[spec["name"]]
            short[part] = {"name": spec["name"]} | canonical(component, spec)
            parts[part] = {"name": spec["name"]} | dataclasses.asdict(
                build(components, short[part])
            )
            science[f"{part}:{spec['name']}"] = component.science
        return parts, short, science

    def _data(self, where: str, dataset: str) -> Planned:
        facts = self.datasets[dataset]
        settings = {"dataset": dataset} | given(facts)
        science = {f"dataset:{dataset}": PARSERS[dataset].science}
        digest = digest_of(
            settings | {"files": {name: checksum(file) for name, file in facts["files"].items()}},
            science,
        )
        raw = {name: f"resources/raw/{dataset}/{name}" for name in facts["files"]}
        return self._keep(
            self.data,
            Planned(f"resources/data/{dataset}-{digest}.h5", digest, settings, science, raw),
        )

    def _shards(self, where: str, *values: Any) -> Planned:
        settings = dict(zip(SHARD_KEYS, values, strict=True))
        dataset, partition, clients, seed = (
            settings[key] for key in ("dataset", "partition", "clients", "seed")
        )
        data = self._once(("data", dataset), self._data, where)
        checked = (settings[key] for key in ("dataset", "samples", "clients", "validation"))
        science = self._once(
            ("partition", partition, *checked), self._check_partition, where
        ).versions()
        late = {
            key: settings[key] for key in ("validation", "holdout") if settings[key] != NEUTRAL[key]
        }
        identity = {key: settings[key] for key in SHARD_KEYS[:5]} | late
        digest = digest_of(identity | {"data": data.digest}, science)
        path = f"results/shards/{dataset}/{partition}/clients{clients}-seed{seed}-{digest}.h5"
        return self._keep(
            self.shards, Planned(path, digest, settings, science, {"data": data.path})
        )

    def _keep(self, things: dict[str, Planned], planned: Planned) -> Planned:
        return things.setdefault(planned.digest, planned)

    def _check_procedure(self, where: str, strategy: str, overrides: Any, *values: Any) -> None:
        settings = (
            dict(zip(PROCEDURE_KEYS, values, strict=True))
            | self._once(("strategy", strategy, overrides), self._strategy, where)[0]
        )
        if settings["optimizer"] == "adam" and settings["momentum"]:
            raise UserError(
                f"{where}: momentum is {settings['momentum']:g}, but Adam takes none; leave it out"
            )
        try:
            parse_participation(settings["participation"])
            parse_procedure(settings["procedure"]).check(settings)
        except ValueError as error:
            raise UserError(f"{where}: procedure '{settings['procedure']}' {error}") from None
        except UserError as error:
            raise UserError(f"{where}: {error}") from None

    def _science(
        self,
        where: str,
        model: str,
        augmentation: str,
        procedure: str,
        partition: str,
        schedule: str,
        participation: str,
    ) -> dict[str, int]:
        how = parse_procedure(procedure)
        return {
            f"model:{model}": MODELS[model].science,
            f"augmentation:{augmentation}": AUGMENTATIONS[augmentation].science,
            f"procedure:{how.name}": how.science,
            f"schedule:{schedule.partition('-')[0]}": parse_schedule(schedule).science,
            f"participation:{participation.partition('-')[0]}": parse_participation(
                participation
            ).science,
        } | parse_name(partition).versions()

    def _check_partition(
        self,
        where: str,
        partition: str,
        dataset: str,
        samples: float,
        clients: int,
        validation: int,
    ) -> Any:
        facts = self.datasets[dataset]
        left = scaled_count(facts["train"], samples) - scaled_count(validation, samples)
        if left < 1:
            raise UserError(
                f"{where}: validation is {validation}, but {dataset} has only {facts['train']} training samples to share"
            )
        try:
            scheme = parse_name(partition)
            scheme.scaled(samples).check(facts["classes"], clients, left, facts.get("groups"))
        except ValueError as error:
            raise UserError(
                f"{where}: partition '{partition}' of {dataset} is impossible: {error}"
            ) from None
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        return scheme

    def _check_shape(self, where: str, model: str, augmentation: str, dataset: str) -> None:
        facts = self.datasets[dataset]
        kind = facts.get("kind", USUAL["kind"])
        for part, taker in (
            ("model", MODELS[model]()),
            ("augmentation", AUGMENTATIONS[augmentation]()),
        ):
            try:
                if kind not in taker.kinds:
                    raise ValueError(f"takes {' or '.join(taker.kinds)}, not {kind}")
                taker.check(tuple(facts["shape"]))
            except ValueError as error:
                raise UserError(
                    f"{where}: {part} '{taker.name}' cannot take {dataset}: {error}"
                ) from None

    def _check_cohort(
        self,
        where: str,
        strategy: str,
        overrides: Any,
        clients: int,
        cohort: int,
        reserve: int,
        dataset: str,
        samples: float,
    ) -> None:
        selector = build(
            SELECTORS,
            self._once(("strategy", strategy, overrides), self._strategy, where)[0]["selector"],
        )
        test = scaled_count(self.datasets[dataset]["test"], samples)
        if cohort > clients:
            raise UserError(f"{where}: cohort is {cohort}, but there are only {clients} clients")
        if scaled_count(reserve, samples) >= test:
            raise UserError(
                f"{where}: reserve is {reserve}, but {dataset} has only {test} test samples, of which some must be left"
            )
        if any(NEEDS[need].reserved for need in selector.needs) and reserve == 0:
            raise UserError(
                f"{where}: strategy '{strategy}' looks at reserved samples, so reserve must be at least 1"
            )
        try:
            selector.check(clients, cohort)
        except ValueError as error:
            raise UserError(f"{where}: strategy '{strategy}' is impossible: {error}") from None


def checksum(file: Mapping[str, Any]) -> str:
    """What a raw file counts by. One behind a login may have none: then all that a user brings counts as the same."""
    return file.get("sha256") or file.get("md5", "")


def needed_settings(values: Values, where: str) -> None:
    """Raise where a setting without a neutral value is missing."""
    for name in REQUIRED:
        if name not in values:
            raise UserError(f"{where}: no value for '{name}'; give it under settings or as an axis")
