"""SCAFFOLD: clients correct each step by how their gradients differ from everybody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cohort.core.components import parameter
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights

ALL = "all"  # whose control variate the server's is; `{weight}/all` beside `{weight}/17`


@dataclass(frozen=True, kw_only=True)
class Scaffold(ServerRule):
    """A client's control variate estimates its gradient; the server's is their mean over all clients. After every step of SGD a client
    moves along its own less the server's. All begin at zero, and one is sent along with every model.

    The estimate is the client's way per step (the paper's option II, as in NIID-Bench). With momentum 0.9 the way is up to ten times as
    long as the gradients of its steps, and so is the estimate; `reach` divides by how far the steps carry and takes the corrections off.
    """

    name: ClassVar[str] = "scaffold"
    assumes_sgd: ClassVar[bool] = True
    copies: ClassVar[int] = 2
    estimate: Literal["steps", "reach"] = parameter(
        "steps", help="the gradient is a client's way per step, or per reach, which knows momentum"
    )

    def begin(self, weights: Weights) -> Weights:
        return {f"{name}/{ALL}": tensor.new_zeros(tensor.shape) for name, tensor in weights.items()}

    def control_variate(self, memory: Weights, client: int) -> Weights:
        names = [name.removesuffix(f"/{client}") for name in memory if name.endswith(f"/{client}")]
        if not names:  # its first time: its own is still zero
            return {
                name.removesuffix(f"/{ALL}"): -tensor
                for name, tensor in memory.items()
                if name.endswith(f"/{ALL}")
            }
        return {name: memory[f"{name}/{client}"] - memory[f"{name}/{ALL}"] for name in names}

    def models_held(self, clients: int) -> int:
        return clients + 1

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        memory, before, reaches = dict(memory), memory, updates.effective_steps().tolist()
        for row, client in enumerate(updates.clients):
            drift, steps, reach = (
                self.control_variate(before, client),
                float(updates.steps[row]),
                reaches[row],
            )
            for name, correction in drift.items():
                way = (weights[name] - updates.weights[name][row]) / updates.lr
                old = correction + before[f"{name}/{ALL}"]
                new = (
                    way / steps + correction
                    if self.estimate == "steps"
                    else (way + steps * correction) / reach
                )
                memory[f"{name}/{client}"] = new
                memory[f"{name}/{ALL}"] = memory[f"{name}/{ALL}"] + (new - old) / updates.total
        return Merged(updates.mean(updates.shares()), memory, {})
