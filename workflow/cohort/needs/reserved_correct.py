"""The reserved test samples that a local model classifies correctly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class ReservedCorrect(Need):
    """The server evaluates each local model on reserved test samples and keeps which ones are
    classified correctly (client, sample). With `reserved_predictions` it shares one evaluation."""

    name: ClassVar[str] = "reserved_correct"
    gathered = "after"
    reserved = True

    def measure(self, context: EvaluationContext) -> np.ndarray:
        correct = [
            results.softmax.argmax(axis=1) == results.labels
            for results in context.local_on_reserved()
        ]
        return np.array(correct, dtype=np.float64)
