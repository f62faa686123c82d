"""Stragglers, clients that do only part of their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.training.participation.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Stragglers(Participation):
    """A fixed share of all clients manages only some epochs (or steps) of J: uniformly drawn from 1
    to all, once, or in every round with `redrawn1`. Their updates count like any other."""

    name: ClassVar[str] = "stragglers"
    share: float = parameter(
        exclusiveMinimum=0, maximum=1, help="share of all clients that are stragglers"
    )
    redrawn: int = parameter(
        0, minimum=0, maximum=1, help="1 to draw a straggler's epochs in every round"
    )

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        slow = fixed.permutation(clients)[: round(self.share * clients)]
        managed = np.full(clients, most)
        managed[slow] = (rng if self.redrawn else fixed).integers(1, most, len(slow), endpoint=True)
        return managed
