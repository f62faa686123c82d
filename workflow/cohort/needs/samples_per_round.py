"""How many of its samples a client trains on in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class SamplesPerRound(Need):
    """The server knows how many samples each client holds, and how many of them its local steps
    take in a round with all of its work."""

    name: ClassVar[str] = "samples_per_round"
    gathered = "once"
    evaluates = False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.samples_per_round()
