"""The last client arrives in the third round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.training.availability import Availability


@dataclass(frozen=True, kw_only=True)
class Newcomer(Availability):
    """All clients but the last are there from the start."""

    name: ClassVar[str] = "newcomer"

    def present(self, clients: int, seed: int, round: int, hour: float) -> np.ndarray:
        return np.arange(clients) < clients - (round < 3)
