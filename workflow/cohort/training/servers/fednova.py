"""FedNova: updates normalized by the number of local steps."""

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
    """Divides each client's update by its effective steps, then multiplies the mean of the
    normalized updates by the mean of the effective steps, both weighted by data size (NIID-Bench).

    This amplifies clients with few steps, so the sum of all factors, which is 1 for FedAvg, can be
    far above 1.
    """

    name: ClassVar[str] = "fednova"
    metrics: ClassVar[Mapping[str, Metric]] = {"nova_factor": Metric("Sum of the clients' factors")}
    assumes_sgd: ClassVar[bool] = True

    def apply(self, weights: Weights, updates: Updates, memory: Weights) -> Merged:
        shares = updates.shares()
        steps = updates.effective_steps().to(shares)
        factors = shares * (shares * steps).sum() / steps
        # w + sum of f_k (w_k - w) = (1 - sum of f_k) w + sum of f_k w_k
        rest = 1 - float(factors.sum())
        merged = {
            name: rest * weights[name] + tensor for name, tensor in updates.mean(factors).items()
        }
        return Merged(merged, memory, {"nova_factor": float(factors.sum())})
