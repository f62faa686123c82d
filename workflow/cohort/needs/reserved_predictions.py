"""The softmax outputs of local models on test samples that are reserved for selectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class ReservedPredictions(Need):
    """The server evaluates each local model on reserved test samples and keeps its softmax outputs,
    one row per sample, in float64; clients send nothing more."""

    name: ClassVar[str] = "reserved_predictions"
    gathered = "after"
    reserved = True

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return np.stack([results.softmax for results in context.local_on_reserved()])
