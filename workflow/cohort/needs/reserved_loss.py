"""The loss of local models on test samples that are reserved for selectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class ReservedLoss(Need):
    """The server evaluates each local model on reserved test samples; clients send nothing more."""

    name: ClassVar[str] = "reserved_loss"
    gathered = "after"
    reserved = True

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.reserved_losses()
