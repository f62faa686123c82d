"""Cells: runs with all of their settings, and the components that these name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from cohort.core import components, paths
from cohort.partition import parse_partition
from cohort.selection import SELECTORS, Selector
from cohort.settings import DEFAULTS, PlannedFile, Settings, check_digest, read_plan
from cohort.training import devices, objectives, procedures, schedules, servers
from cohort.training.availability import parse_availability
from cohort.training.participation import parse_participation

PARTS: dict[str, Mapping[str, type[components.Component]]]
PARTS = {"selector": SELECTORS, "objective": objectives.OBJECTIVES, "server": servers.SERVERS}
"""Each part of a strategy with the components that it may name."""
T = TypeVar("T")


def named_by(setting: str, parse: Callable[[str], T]) -> cached_property[T]:
    """A property of a cell: the component that a setting names."""
    return cached_property(lambda cell: parse(getattr(cell.settings, setting)))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run: its settings, the parts of its strategy, and the files and digest of its plan.
    `science` holds the versions of its components, and `inputs` the paths of its data and shards.
    """

    settings: Settings
    selector: Selector
    objective: objectives.Objective
    server: servers.ServerRule
    path: str = ""
    digest: str = ""
    science: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)

    partition = named_by("partition", parse_partition)
    """The scheme that deals samples to clients."""
    procedure = named_by("procedure", procedures.parse_procedure)
    """The training procedure of the run: federated, centralized, and so on."""
    schedule = named_by("schedule", schedules.parse_schedule)
    """The learning rate schedule of a centralized run."""
    participation = named_by("participation", parse_participation)
    """The rule by which clients of a cohort answer."""
    availability = named_by("availability", parse_availability)
    """Which clients can be chosen."""
    client_devices = named_by("client_devices", devices.parse_devices)
    """The model of clients' compute and network speeds."""

    def identity(self) -> dict[str, Any]:
        """Everything that the cell's digest is made from, besides science versions: its settings
        and its strategy's parts, both without defaults, and the digest of its data."""
        settings = self.settings.values().items()
        changed = {name: value for name, value in settings if value != DEFAULTS[name]}
        parts = {part: getattr(self, part).spec(defaults=False) for part in PARTS}
        return changed | parts | {"data": paths.digest_in(self.inputs["data"])}

    def plain_settings(self) -> dict[str, Any]:
        """The settings and all parameters of the strategy's parts, as a record holds them."""
        return self.settings.values() | {part: getattr(self, part).spec() for part in PARTS}

    def planned(self) -> PlannedFile:
        """The content of the cell's plan file."""
        return PlannedFile(self.path, self.digest, self.plain_settings(), self.science, self.inputs)


def cell_of(planned: PlannedFile) -> Cell:
    """Build the cell that a plan file describes."""
    values = dict(planned.settings)
    parts: dict[str, Any] = {}
    for part, catalog in PARTS.items():
        spec = dict(values.pop(part))
        parts[part] = catalog[spec.pop("name")](**spec)
    rest = {key: value for key, value in vars(planned).items() if key != "settings"}
    return Cell(settings=Settings(**values), **parts, **rest)


def read_cell(file: str | Path) -> Cell:
    """Read the plan file of a cell. Raise UserError unless its digest is that of its settings."""
    planned = read_plan(file)
    check_digest(planned, lambda planned: cell_of(planned).identity())
    return cell_of(planned)
