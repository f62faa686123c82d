"""The root mean square of the losses of a client's samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, ModelResults, Need

TINY = 1e-30  # a probability that is no more than 0 in float64


@dataclass(frozen=True, kw_only=True)
class RMSLoss(Need):
    """After training, each client evaluates its local model on its own samples and sends the root
    mean square of their losses, as Oort's statistical utility asks; NaN without samples."""

    name: ClassVar[str] = "loss_norm"
    gathered = "after"

    def upload(self, classes: int) -> int:
        return 4

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return loss_norms(context.local_on_own())


def loss_norms(evaluations: Iterable[ModelResults]) -> np.ndarray:
    """The root mean square of the losses of each model's samples; NaN without samples."""
    norms = []
    for results in evaluations:
        labels = results.labels
        right = results.softmax[np.arange(len(labels)), labels]
        squares = np.log(np.maximum(right, TINY)) ** 2
        norms.append(np.sqrt(squares.mean()) if len(labels) else np.nan)
    return np.array(norms)
