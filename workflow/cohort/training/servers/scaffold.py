"""SCAFFOLD: control variates correct each local step for client drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cohort.core.components import parameter
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights

ALL = (
    "all"  # the server's control variate is stored as `{weight}/all`, client 17's as `{weight}/17`
)


@dataclass(frozen=True, kw_only=True)
class Scaffold(ServerRule):
    """A client's control variate estimates its gradient, the server's is the mean of all clients'.
    After each SGD step a client adds the learning rate times its own variate minus the server's.
    Control variates begin at zero, and one is sent along with every model.

    The estimate is the client's update per step (the paper's option II, as in NIID-Bench). With
    momentum 0.9 updates, and so estimates, are up to ten times too long; `estimate: reach` divides
    by the effective steps instead and accounts for the corrections.
    """

    name: ClassVar[str] = "scaffold"
    assumes_sgd: ClassVar[bool] = True
    copies: ClassVar[int] = 2
    estimate: Literal["steps", "reach"] = parameter(
        "steps",
        help="divide a client's update by its steps, or by those that momentum makes of them",
    )

    def begin(self, weights: Weights) -> Weights:
        return {f"{name}/{ALL}": tensor.new_zeros(tensor.shape) for name, tensor in weights.items()}

    def control_variate(self, memory: Weights, client: int) -> Weights:
        names = [name.removesuffix(f"/{client}") for name in memory if name.endswith(f"/{client}")]
        if not names:  # the client was never chosen, so its own variate is still zero
            return {
                name.removesuffix(f"/{ALL}"): -tensor
                for name, tensor in memory.items()
                if name.endswith(f"/{ALL}")
            }
        return {name: memory[f"{name}/{client}"] - memory[f"{name}/{ALL}"] for name in names}

    def models_held(self, clients: int) -> int:
        return clients + 1

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        memory, before, effective = dict(memory), memory, updates.effective_steps().tolist()
        for row, client in enumerate(updates.clients):
            steps = float(updates.steps[row])
            for name, variate in self.control_variate(before, client).items():
                moved = (weights[name] - updates.weights[name][row]) / updates.lr
                old = variate + before[f"{name}/{ALL}"]
                if self.estimate == "steps":
                    new = moved / steps + variate
                else:
                    new = (moved + steps * variate) / effective[row]
                memory[f"{name}/{client}"] = new
                memory[f"{name}/{ALL}"] = memory[f"{name}/{ALL}"] + (new - old) / updates.total
        return Merged(updates.mean(updates.shares()), memory, {})
