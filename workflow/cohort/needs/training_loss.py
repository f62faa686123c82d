"""The loss that clients see while they train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class TrainingLoss(Need):
    """After training, each client sends the mean loss of its local steps, on its own training
    samples. No evaluation is needed."""

    name: ClassVar[str] = "training_loss"
    gathered = "after"
    evaluates = False

    def upload(self, classes: int) -> int:
        return 4

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.training_losses()
