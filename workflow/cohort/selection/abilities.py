"""What some selectors can do beyond choosing: a class to inherit from beside `Selector` each."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cohort.selection.selector import Reports, State, View


class Screening:
    """Looks at a pool of clients before it chooses. What its needs gather before choosing is asked
    of this pool, and `select` gets the pool as its candidates."""

    def pool_size(self, clients: int, cohort: int) -> int:
        """How many of so many clients are in the pool."""
        return clients

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        """The clients of the pool."""
        return candidates


class Probing(Screening):
    """Has each client of the pool train for its first local `batches` before it chooses.

    `view.reports["probe_norm"]` then says how far each model moved. The clients that are chosen
    continue from where their probe ended.
    """

    batches: int


class Allocating(ABC):
    """Decides how many samples of each class a client trains on."""

    @abstractmethod
    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        """How many samples of each class each client of the cohort uses, one row per client."""


class Filtering(ABC):
    """Leaves some updates out of the aggregation."""

    @abstractmethod
    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        """Whether each update counts, given the reports and sizes of the clients that answered."""


class Measuring(ABC):
    """Records numbers of its own round by round, which its `metrics` declare."""

    @abstractmethod
    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        """The numbers of a round, from what `select` was given and what it chose."""
