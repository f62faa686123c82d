"""How long a client took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class Duration(Need):
    """The server notes the simulated seconds from sending a client the model to receiving its
    update; 0 if the run simulates no time."""

    name: ClassVar[str] = "duration"
    gathered = "after"
    evaluates = False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.durations()
