"""The root mean square of the losses of the samples of a client's last local step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.loss_norm import loss_norms
from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class LastBatchRMSLoss(Need):
    """After training, each client evaluates its local model on the batch of its last local step and
    sends the root mean square of the losses, as FedScale's Oort asks; NaN without a step."""

    name: ClassVar[str] = "last_batch_loss_norm"
    gathered = "after"

    def upload(self, classes: int) -> int:
        return 4

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return loss_norms(context.local_on_last_batch())
