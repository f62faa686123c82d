"""How long a client is expected to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class ExpectedDuration(Need):
    """The server knows each client's device and link, and so the simulated seconds of a round with
    all of J; 0 if the run simulates no time."""

    name: ClassVar[str] = "expected_duration"
    gathered = "once"
    evaluates = False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.durations()
