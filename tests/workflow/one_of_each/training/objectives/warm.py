"""Cross-entropy at a temperature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.training.objectives import CrossEntropy

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Warm(CrossEntropy):
    """Divides logits by a temperature."""

    name: ClassVar[str] = "warm"
    temperature: float = parameter(2.0, exclusiveMinimum=0, help="what logits are divided by")

    def logits(self, outputs: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        return outputs / self.temperature
