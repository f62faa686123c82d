"""FedRS: a client hardly moves the output weights of classes that it does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class FedRS(CrossEntropy):
    """Cross-entropy of a restricted softmax: what the output weights of a missing class give is multiplied by alpha, the bias is not.

    That is the paper's form. Its authors' code scales classes smoothly by their share instead, and has no bias.
    """

    name: ClassVar[str] = "fedrs"
    alpha: float = parameter(
        0.5, minimum=0, maximum=1, help="what is left of the output weights of a missing class"
    )

    def facts(self, counts: Tensor) -> Tensor:
        return (counts == 0).to(counts.dtype)

    def logits(self, outputs: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        return outputs.where(facts == 0, self.alpha * (outputs - bias) + bias)
