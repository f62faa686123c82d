"""FedAvgM: server momentum, with optional clipping of updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


@dataclass(frozen=True, kw_only=True)
class Momentum(ServerRule):
    """Server momentum: velocity = beta * velocity + mean update; weights += lr * velocity.

    With `clip`, each update is first scaled down to at most this norm over all its weights.
    """

    name: ClassVar[str] = "momentum"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "clipped_fraction": Metric("Updates shortened", "%", 100, digits=1),
        "largest_update": Metric("Largest norm of an update"),
    }
    beta: float = parameter(0.9, minimum=0, exclusiveMaximum=1, help="momentum of the server")
    lr: float = parameter(1.0, exclusiveMinimum=0, help="the server's learning rate")
    clip: float = parameter(
        0.0, minimum=0, help="largest norm of a client's update, 0 for no clipping"
    )

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        return {name: tensor.new_zeros(tensor.shape) for name, tensor in weights.items()}

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        norms = updates.distances(weights)
        clipped = norms > self.clip if self.clip else norms < 0
        if clipped.any():
            updates = updates.scaled(weights, (self.clip / norms).where(clipped, 1.0))
        mean = updates.mean(updates.shares())
        velocity = {
            name: self.beta * memory[name] + (mean[name] - weights[name]) for name in memory
        }
        # in this form beta 0 and a learning rate of 1 give exactly the mean
        moved = {
            name: mean[name] + (self.lr * velocity[name] - (mean[name] - weights[name]))
            for name in memory
        }
        measured = {
            "clipped_fraction": float(clipped.double().mean()),
            "largest_update": float(norms.max()),
        }
        return Merged(mean | moved, velocity, measured)
