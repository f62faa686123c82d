"""The loss of the global model on a candidate's own samples, before the cohort is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class CandidateLoss(Need):
    """Each client of the pool receives the global model, evaluates it on its own training samples
    and sends the mean loss, as power-of-choice and FedCor require."""

    name: ClassVar[str] = "candidate_loss"
    gathered = "before"

    def upload(self, classes: int) -> int:
        return 4

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return np.array([results.loss for results in context.global_on_own()])
