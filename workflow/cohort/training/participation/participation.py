"""The base of all participations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.core.component_names import NameEncoded
from cohort.core.metric import Metric


@dataclass(frozen=True, kw_only=True)
class Participation(NameEncoded):
    """A model of faults: which clients of a cohort respond, and how much of the local work J they
    complete. In this base class all clients respond and complete all of it.

    Dropouts and stragglers are drawn from random generators of their own, so that every strategy
    meets the same ones.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records itself, by recorded name."""

    def responds(self, cohort: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A Boolean mask: whether each client of the cohort responds."""
        return np.ones(len(cohort), dtype=bool)

    def efforts(
        self, clients: int, most: int, fixed: np.random.Generator, rng: np.random.Generator
    ) -> np.ndarray:
        """The number of epochs (or steps), of the `most` of J, that each client of the federation
        completes. The generator `fixed` yields the same draws in every round."""
        return np.full(clients, most)
