"""The reserved test samples that a local model classifies correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class ReservedCorrect(Need):
    """Correctness (client, sample) of each local model on each reserved test sample, 1 or 0;
    clients send nothing more. With `reserved_predictions` it shares one evaluation."""

    name: ClassVar[str] = "reserved_correct"
    gathered = "after"
    reserved = True

    def measure(self, context: EvaluationContext) -> np.ndarray:
        correct = [
            results.softmax.argmax(axis=1) == results.labels
            for results in context.local_on_reserved()
        ]
        return np.array(correct, dtype=np.float64)
