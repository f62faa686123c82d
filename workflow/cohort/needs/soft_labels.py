"""The mean softmax output of a client's local model on its own samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class SoftLabels(Need):
    """After training, each client sends the mean softmax output of its local model over its own
    samples: one number per class."""

    name: ClassVar[str] = "soft_labels"
    gathered = "after"

    def upload(self, classes: int) -> int:
        return 4 * classes

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return np.stack([results.mean_softmax for results in context.local_on_own()])
