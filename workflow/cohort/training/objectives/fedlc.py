"""FedLC: logits calibrated by the label counts of a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives.cross_entropy import CrossEntropy
from cohort.training.objectives.objective import Coefficients

if TYPE_CHECKING:
    from torch import Tensor

MISSING = 1e-8  # the count of a missing class: lowers its logit by 100, out of the softmax


@dataclass(frozen=True, kw_only=True)
class FedLC(CrossEntropy):
    """Cross-entropy of calibrated logits: tau * n^(-1/4) is subtracted, where n is how many samples
    of the class the client holds. The rarer a class, the larger its margin.

    The paper's sum excludes the true class; implementations, including this one, keep it.
    """

    name: ClassVar[str] = "fedlc"
    tau: float = parameter(1.0, minimum=0, help="strength of the calibration")

    def label_statistics(self, counts: Tensor) -> Tensor:
        return self.tau * counts.clamp(min=MISSING) ** -0.25

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs - statistics

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        return Coefficients(shift=-statistics)
