"""Clients that do not get through their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.training.participation.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Stragglers(Participation):
    """A share of all clients, the same for the whole run, manages a number of epochs between one and those that J asks for, all equally
    likely (of steps, where J counts steps). It is drawn once for each of them, with `redrawn1` in every round. What they send counts as
    any other update.
    """

    name: ClassVar[str] = "stragglers"
    share: float = parameter(minimum=0, maximum=1, help="share of all clients that are stragglers")
    redrawn: int = parameter(
        0, minimum=0, maximum=1, help="1 if a straggler's epochs are drawn anew in every round"
    )

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        slow = fixed.permutation(clients)[: round(self.share * clients)]
        managed = np.full(clients, most)
        managed[slow] = (rng if self.redrawn else fixed).integers(1, most, len(slow), endpoint=True)
        return managed
