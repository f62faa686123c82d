"""Half of the way to the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.training.servers import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


@dataclass(frozen=True, kw_only=True)
class Halfway(ServerRule):
    """Moves the global weights half of the way to the clients' mean."""

    name: ClassVar[str] = "halfway"

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        mean = updates.merged(weights)
        return Merged({name: (weights[name] + mean[name]) / 2 for name in mean}, memory, {})
