"""FedRS: a client hardly moves the output weights of classes that it does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.objective import output_bias

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class FedRS(CrossEntropy):
    """Cross-entropy of a restricted softmax: what the output weights of a missing class give is multiplied by alpha, the bias is not.

    That is the paper's form. Its authors' code scales classes smoothly by their share instead, and has no bias.
    """

    name: ClassVar[str] = "fedrs"
    alpha: float = parameter(0.5, minimum=0, maximum=1, help="what is left of the output weights of a missing class")

    def for_client(self, labels: Tensor, model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
        bias = output_bias(model)
        missing = labels.bincount(minlength=len(bias)) == 0

        def restricted(outputs: Tensor, targets: Tensor) -> Tensor:
            return self.loss(outputs.where(~missing, self.alpha * (outputs - bias) + bias), targets)

        return restricted
