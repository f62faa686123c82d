"""Uniform random selection, as in FedAvg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.selection.selector import Selector, State, View


@dataclass(frozen=True, kw_only=True)
class Random(Selector):
    """Draws the cohort uniformly, without replacement."""

    name: ClassVar[str] = "random"

    def select(
        self, state: State, candidates: np.ndarray, view: View, rng: np.random.Generator
    ) -> np.ndarray:
        return rng.choice(candidates, view.cohort, replace=False)
