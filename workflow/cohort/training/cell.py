"""Cells: runs with all of their settings, and the components that these name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cohort.core.components import Component
from cohort.core.errors import UserError
from cohort.core.paths import digest_in
from cohort.partition import Scheme, parse_partition
from cohort.selection import SELECTORS, Selector
from cohort.settings import PLAN_FIX, PlannedFile, Settings, cell_identity, check_digest, read_plan
from cohort.training.devices import Devices, parse_devices
from cohort.training.objectives import OBJECTIVES, Objective
from cohort.training.participation import Participation, parse_participation
from cohort.training.procedures import Procedure, parse_procedure
from cohort.training.schedules import Schedule, parse_schedule
from cohort.training.servers import SERVERS, ServerRule

PARTS: dict[str, Mapping[str, type[Component]]] = {
    "selector": SELECTORS,
    "objective": OBJECTIVES,
    "server": SERVERS,
}
"""Each part of a strategy with the components that it may name."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run: its settings, the parts of its strategy, and the files and digest of its plan.

    `generated` says that its data set stands in for the real one. `science` holds the versions of
    its components, and `inputs` the paths of its data and shards.
    """

    settings: Settings
    selector: Selector
    objective: Objective
    server: ServerRule
    generated: bool = False
    path: str = ""
    digest: str = ""
    science: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)

    @cached_property
    def partition(self) -> Scheme:
        """The scheme that deals samples to clients."""
        return parse_partition(self.settings.partition)

    @cached_property
    def procedure(self) -> Procedure:
        """The training procedure of the run: federated, centralized, and so on."""
        return parse_procedure(self.settings.procedure)

    @cached_property
    def schedule(self) -> Schedule:
        """The learning rate schedule of a centralized run."""
        return parse_schedule(self.settings.schedule)

    @cached_property
    def participation(self) -> Participation:
        """The rule by which clients of a cohort answer."""
        return parse_participation(self.settings.participation)

    @cached_property
    def client_devices(self) -> Devices:
        """The model of clients' compute and network speeds."""
        return parse_devices(self.settings.client_devices)

    def identity(self) -> dict[str, Any]:
        """Everything that the cell's digest is made from, besides science versions."""
        parts = {part: getattr(self, part).spec(defaults=False) for part in PARTS}
        return cell_identity(self.settings.values(), parts, digest_in(self.inputs["data"]))

    def plain_settings(self) -> dict[str, Any]:
        """The settings and all parameters of the strategy's parts, as a record holds them."""
        parts = {part: getattr(self, part).spec() for part in PARTS}
        return self.settings.values() | parts | ({"generated": True} if self.generated else {})

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
    generated = values.pop("generated", False)
    rest = {key: value for key, value in vars(planned).items() if key != "settings"}
    return Cell(settings=Settings(**values), generated=generated, **parts, **rest)


def read_cell(file: str | Path) -> Cell:
    """Read the plan file of a cell. Raise UserError unless its digest is that of its settings, and
    its devices are those that it was planned with."""
    planned = read_plan(file)
    check_digest(planned, lambda planned: cell_of(planned).identity())
    cell = cell_of(planned)
    devices = cell.client_devices
    if planned.science.get(f"devices:{devices.name}", devices.version()) != devices.version():
        raise UserError(f"{file}: client_devices '{devices}' are others by now; {PLAN_FIX}")
    return cell
