"""FedNova: clients that take more steps do not pull harder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.metric import Metric
from cohort.training.servers.server import Merged, ServerRule

if TYPE_CHECKING:
    from cohort.training.updates import Updates, Weights


@dataclass(frozen=True, kw_only=True)
class FedNova(ServerRule):
    """Each client's way is divided by its reach, how far its steps would carry it on a constant gradient; the mean of these directions is
    multiplied by the mean reach (both weighted by the sizes of the clients' data). The form of NIID-Bench.

    So a client of few steps is amplified, and the factors of all clients together can be far above 1, FedAvg's.
    """

    name: ClassVar[str] = "fednova"
    metrics: ClassVar[Mapping[str, Metric]] = {"nova_factor": Metric("Sum of the clients' factors")}
    assumes_sgd: ClassVar[bool] = True

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        shares = updates.shares()
        reach = updates.effective_steps().to(shares)
        factors = shares * (shares * reach).sum() / reach
        left = 1 - float(factors.sum())  # of the global weights: w + sum of f (w_k - w)
        merged = {
            name: left * weights[name] + tensor for name, tensor in updates.mean(factors).items()
        }
        return Merged(merged, memory, {"nova_factor": float(factors.sum())})
