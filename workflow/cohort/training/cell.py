"""Cells: runs with all of their settings, and the components that these name. `job/train.py` trains
one, by the rounds of its procedure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cohort.core.components import Component
from cohort.core.paths import digest_in
from cohort.partition import Scheme, parse_partition
from cohort.selection import SELECTORS, Selector
from cohort.settings import PlannedFile, Settings, cell_identity, check_digest, read_plan
from cohort.training import devices, objectives, procedures, schedules, servers
from cohort.training.availability import Availability, parse_availability
from cohort.training.participation import Participation, parse_participation

PARTS: dict[str, Mapping[str, type[Component]]]
PARTS = {"selector": SELECTORS, "objective": objectives.OBJECTIVES, "server": servers.SERVERS}
"""Each part of a strategy with the components that it may name."""


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

    @cached_property
    def partition(self) -> Scheme:
        """The scheme that deals samples to clients."""
        return parse_partition(self.settings.partition)

    @cached_property
    def procedure(self) -> procedures.Procedure:
        """The training procedure of the run: federated, centralized, and so on."""
        return procedures.parse_procedure(self.settings.procedure)

    @cached_property
    def schedule(self) -> schedules.Schedule:
        """The learning rate schedule of a centralized run."""
        return schedules.parse_schedule(self.settings.schedule)

    @cached_property
    def participation(self) -> Participation:
        """The rule by which clients of a cohort answer."""
        return parse_participation(self.settings.participation)

    @cached_property
    def availability(self) -> Availability:
        """Which clients can be chosen."""
        return parse_availability(self.settings.availability)

    @cached_property
    def client_devices(self) -> devices.Devices:
        """The model of clients' compute and network speeds."""
        return devices.parse_devices(self.settings.client_devices)

    def identity(self) -> dict[str, Any]:
        """Everything that the cell's digest is made from, besides science versions."""
        parts = {part: getattr(self, part).spec(defaults=False) for part in PARTS}
        return cell_identity(self.settings.values(), parts, digest_in(self.inputs["data"]))

    def plain_settings(self) -> dict[str, Any]:
        """The settings and all parameters of the strategy's parts, as a record holds them."""
        parts = {part: getattr(self, part).spec() for part in PARTS}
        return self.settings.values() | parts

    def planned(self) -> PlannedFile:
        """The content of the cell's plan file."""
        return PlannedFile(self.path, self.digest, self.plain_settings(), self.science, self.inputs)


def cell_of(planned: PlannedFile) -> Cell:
    """Build the cell that a plan file describes."""
    values = dict(planned.settings)
    parts: dict[str, Any] = {}
    for part, components in PARTS.items():
        spec = dict(values.pop(part))
        parts[part] = components[spec.pop("name")](**spec)
    rest = {key: value for key, value in vars(planned).items() if key != "settings"}
    return Cell(settings=Settings(**values), **parts, **rest)


def read_cell(file: str | Path) -> Cell:
    """Read the plan file of a cell. Raise UserError unless its digest is that of its settings."""
    planned = read_plan(file)
    check_digest(planned, lambda planned: cell_of(planned).identity())
    return cell_of(planned)
