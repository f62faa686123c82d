"""Only the first client of a cohort answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.training.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Leader(Participation):
    """Everybody but the first drops out."""

    name: ClassVar[str] = "leader"

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.arange(len(cohort)) == 0
