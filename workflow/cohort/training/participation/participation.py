"""What a participation is: who of a cohort answers, and with how much of the work that J asks for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cohort.core.component_names import Named


@dataclass(frozen=True, kw_only=True)
class Participation(Named):
    """Clients that do what they are asked. Faults are drawn from addresses of their own, so they are the same for every strategy."""

    def answers(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Whether each client of the cohort is there to train."""
        return np.ones(len(cohort), dtype=bool)

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        """How many of the `most` epochs (or steps) of J each of all clients manages; `fixed` draws the same in every round."""
        return np.full(clients, most)
