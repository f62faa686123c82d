"""FedRS: a client hardly changes the output weights of classes that it does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.objective import Coefficients

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class FedRS(CrossEntropy):
    """Cross-entropy of a restricted softmax: the logit of a class that the client does not hold,
    without its bias, is multiplied by alpha.

    This is the paper's form. Its authors' code scales each class smoothly by its share instead, and
    has no bias.
    """

    name: ClassVar[str] = "fedrs"
    alpha: float = parameter(
        0.5, minimum=0, maximum=1, help="factor of the logit of a missing class"
    )

    def label_statistics(self, counts: Tensor) -> Tensor:
        return (counts == 0).to(counts.dtype)

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs.where(statistics == 0, self.alpha * (outputs - bias) + bias)

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(scale=1 - (1 - self.alpha) * statistics)
