"""FedLC: logits calibrated by how many samples of each class a client has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy

if TYPE_CHECKING:
    from torch import Tensor

MISSING = 1e-8  # samples of a class that a client does not have: its logit sinks by 100, which leaves it out of the softmax


@dataclass(frozen=True, kw_only=True)
class FedLC(CrossEntropy):
    """Cross-entropy of logits from which tau times the number of the class's samples to the power of -1/4 is subtracted: the rarer a
    class, the larger the margin that it is trained to. The paper's sum leaves the true class out; implementations keep it, as here.
    """

    name: ClassVar[str] = "fedlc"
    tau: float = parameter(1.0, minimum=0, help="how strong the calibration is")

    def facts(self, counts: Tensor) -> Tensor:
        return self.tau * counts.clamp(min=MISSING) ** -0.25

    def logits(self, outputs: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        return outputs - facts
