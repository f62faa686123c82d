"""The accuracy of a client's local model on its own samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class LocalModelAccuracy(Need):
    """After training, each client evaluates its local model on its own training samples and sends
    the accuracy, from 0 to 1; NaN for a client without samples."""

    name: ClassVar[str] = "local_accuracy"
    gathered = "after"

    def upload(self, classes: int) -> int:
        return 4

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return np.array([results.accuracy for results in context.local_on_own()])
