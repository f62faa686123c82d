"""Plain cross-entropy, as in FedAvg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.training.objectives.objective import Objective

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Objective):
    """Softmax cross-entropy."""

    name: ClassVar[str] = "cross-entropy"

    def losses(self, outputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        from torch.nn.functional import cross_entropy

        return cross_entropy(self.logits(outputs, facts, bias), targets, reduction="none")

    def logits(self, outputs: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        """The outputs as the softmax sees them."""
        return outputs
