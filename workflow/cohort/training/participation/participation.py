"""What a participation is: who of a cohort answers, and with how much of the work that J asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.component_names import Named
from cohort.core.metric import Metric


@dataclass(frozen=True, kw_only=True)
class Participation(Named):
    """Clients that do what they are asked. Faults are drawn from addresses of their own, so they are the same for every strategy."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """What it records of its own, by the recorded name."""

    def answers(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Whether each client of the cohort is there to train."""
        return np.ones(len(cohort), dtype=bool)

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        """How many of the `most` epochs (or steps) of J each of all clients manages; `fixed` draws the same in every round."""
        return np.full(clients, most)
