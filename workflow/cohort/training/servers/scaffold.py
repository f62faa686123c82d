"""SCAFFOLD: control variates correct each local step for client drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    import torch

    from cohort.training.updates import Updates, Weights
else:
    torch = lazy("torch")

# The server's control variate is stored as `{weight}/all`, client 17's as `{weight}/17`, and that
# of clients that were never chosen, unless it is zero, as `{weight}/start`.
ALL, START = "all", "start"


@dataclass(frozen=True, kw_only=True)
class Scaffold(ServerRule):
    """SCAFFOLD's averaging: a client's control variate estimates its gradient, the server's is the
    mean of all clients'. After each SGD step a client adds the learning rate times its own variate
    minus the server's. One control variate is sent along with every model.

    Control variates begin at zero. In NIID-Bench's code they all begin at the weights of one random
    network (`start: random`): that changes nothing while all clients take part, but with a cohort,
    the server's moves away from those of clients that were not chosen yet.

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
    start: Literal["zero", "random"] = parameter(
        "zero", help="where control variates begin: at zero, or at a random network (NIID-Bench)"
    )

    def begin(self, weights: Weights, redraw: Callable[[], Weights]) -> Weights:
        if self.start == "zero":
            return {f"{name}/{ALL}": torch.zeros_like(tensor) for name, tensor in weights.items()}
        drawn = redraw()
        copies = (
            (f"{name}/{key}", tensor) for key in (ALL, START) for name, tensor in drawn.items()
        )
        return {
            name: tensor.clone() for name, tensor in copies
        }  # checkpoints hold no shared memory

    def control_variate(self, memory: Weights, client: int) -> Weights:
        variates = {}
        for key in memory:
            name, _, whose = key.rpartition("/")
            if whose == ALL:
                own = memory.get(f"{name}/{client}", memory.get(f"{name}/{START}"))
                variates[name] = -memory[key] if own is None else own - memory[key]
        return variates

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
