"""The number of samples of each class that a client holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class LabelCounts(Need):
    """Every client reports its label counts before the first round, as 32-bit numbers."""

    name: ClassVar[str] = "label_counts"
    gathered = "once"

    def upload(self, classes: int) -> int:
        return 4 * classes

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.label_counts()
