"""The parts of a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cohort.cell.planned import Planned
from cohort.cell.settings import cell_identity
from cohort.core.components import Component, canonical
from cohort.core.paths import digest_in
from cohort.selection import SELECTORS
from cohort.training.objectives import OBJECTIVES
from cohort.training.servers import SERVERS

PARTS: dict[str, Mapping[str, type[Component]]] = {
    "selector": SELECTORS,
    "objective": OBJECTIVES,
    "server": SERVERS,
}
"""Each part with the components that it may name."""


def without_defaults(part: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A part's name, and its parameters that differ from their defaults."""
    return {"name": spec["name"]} | canonical(PARTS[part][spec["name"]], spec)


def identity_of(planned: Planned) -> dict[str, Any]:
    """The identity of a planned cell, from which its digest is made: its settings, its strategy's
    parts and the digest in the path of its data."""
    parts = {part: without_defaults(part, planned.settings[part]) for part in PARTS}
    excluded = {*PARTS, "generated"}  # of which the digest of the data says the latter
    settings = {key: value for key, value in planned.settings.items() if key not in excluded}
    return cell_identity(settings, parts, digest_in(planned.inputs["data"]))
