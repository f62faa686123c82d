"""FedAvg's server rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


@dataclass(frozen=True, kw_only=True)
class Average(ServerRule):
    """The mean of the local weights, weighted by data size."""

    name: ClassVar[str] = "average"

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        return Merged(updates.mean(updates.shares()), memory, {})
