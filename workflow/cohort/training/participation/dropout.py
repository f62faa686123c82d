"""Clients that drop out after they were chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.components import parameter
from cohort.training.participation.participation import Participation


@dataclass(frozen=True, kw_only=True)
class Dropout(Participation):
    """A fixed share of every cohort, rounded down, drops out: `dropout-0.3` is three of ten."""

    name: ClassVar[str] = "dropout"
    share: float = parameter(
        exclusiveMinimum=0, exclusiveMaximum=1, help="share of the cohort that drops out"
    )

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        gone = rng.choice(len(cohort), math.floor(self.share * len(cohort) + 1e-9), replace=False)
        return ~np.isin(np.arange(len(cohort)), gone)


@dataclass(frozen=True, kw_only=True)
class BernoulliDropout(Participation):
    """Each client of the cohort drops out independently with a probability; if all would, the first
    one stays."""

    name: ClassVar[str] = "bernoulli"
    probability: float = parameter(
        exclusiveMinimum=0, exclusiveMaximum=1, help="probability of dropping out"
    )

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        stays = rng.random(len(cohort)) >= self.probability
        stays[0] |= not stays.any()
        return stays
