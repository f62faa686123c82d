"""Cross-entropy, as in FedAvg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.training.objectives.objective import Coefficients, Objective

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import functional
else:
    functional = lazy("torch.nn.functional")


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Objective):
    """Softmax cross-entropy."""

    name: ClassVar[str] = "cross-entropy"

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        logits = self.logits(outputs, statistics, bias)
        return functional.cross_entropy(logits, targets, reduction="none")

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        """The inputs of the softmax, calculated from the outputs of the model."""
        return outputs

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients()
