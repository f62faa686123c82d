"""The clients that hold samples which others hold too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class Overlap(Need):
    """The server knows from the start which clients overlap with others: 1 for each that does, 0
    for the others. Nothing is sent, because the server could not find out by asking: PECO assumes
    for its baseline that the server knows."""

    name: ClassVar[str] = "overlap"
    gathered = "once"

    def measure(self, context: EvaluationContext) -> np.ndarray:
        return context.overlapping()
