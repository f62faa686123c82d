"""FedAvgM: the server goes on in the direction of earlier rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


@dataclass(frozen=True, kw_only=True)
class Momentum(ServerRule):
    """The velocity is what is left of it and the mean update; the weights move by the velocity times the server's learning rate.

    Each client's update can be shortened to a norm, taken over all its weights together, before the mean is formed.
    """

    name: ClassVar[str] = "momentum"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "clipped_fraction": Metric("Updates shortened", "%", 100, digits=1),
        "largest_update": Metric("Largest norm of an update"),
    }
    beta: float = parameter(
        0.9, minimum=0, exclusiveMaximum=1, help="how much of the velocity is left after a round"
    )
    lr: float = parameter(1.0, exclusiveMinimum=0, help="the server's learning rate")
    clip: float = parameter(
        0.0, minimum=0, help="the norm to which a client's update is shortened, 0 if none is"
    )

    def begin(self, weights: Weights) -> Weights:
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
        # written so that beta 0 and a learning rate of 1 give the mean itself, to the last bit
        moved = {
            name: mean[name] + (self.lr * velocity[name] - (mean[name] - weights[name]))
            for name in memory
        }
        measured = {
            "clipped_fraction": float(clipped.double().mean()),
            "largest_update": float(norms.max()),
        }
        return Merged(mean | moved, velocity, measured)
