"""The parts of a strategy."""

from __future__ import annotations

from collections.abc import Mapping

from cohort.core.components import Component
from cohort.selection import SELECTORS
from cohort.training.objectives import OBJECTIVES
from cohort.training.servers import SERVERS

PARTS: dict[str, Mapping[str, type[Component]]] = {
    "selector": SELECTORS,
    "objective": OBJECTIVES,
    "server": SERVERS,
}
"""Each part with the components that it may name."""
