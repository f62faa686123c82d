"""Abilities of some selectors beyond choosing: a selector inherits from `Selector` and from the
class of each of its abilities."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cohort.selection.selector import Reports, State, View


class Screening:
    """Lets a selector choose from a pool of clients instead of all of them.

    The pool is the `candidates` that `select` receives. Needs that are gathered before choosing are
    gathered from the pool only.
    """

    def pool_size(self, clients: int, cohort: int) -> int:
        """The size of the pool, given the numbers of clients in the federation and the cohort."""
        return clients

    def draw_pool(self, candidates: np.ndarray, view: View, rng: np.random.Generator) -> np.ndarray:
        """Draw the pool from the candidates."""
        return candidates


class Probing(Screening):
    """Lets a selector have each client of the pool train on its first `batches` before it chooses.

    `view.reports["probe_norm"]` then holds the norm of each client's update. The clients that are
    chosen continue training from the weights of their probe.
    """

    batches: int


class Skipping(ABC):
    """Lets a selector gather its needs before choosing in some rounds only."""

    @abstractmethod
    def asks(self, state: State, view: View) -> bool:
        """Whether to gather the needs before choosing in this round."""


class Allocating(ABC):
    """Lets a selector decide how many samples of each class each client of the cohort trains on."""

    @abstractmethod
    def quotas(self, cohort: np.ndarray, view: View) -> np.ndarray:
        """The number of samples of each class to use (client of the cohort, class)."""


class Filtering(ABC):
    """Lets a selector exclude some updates from the aggregation."""

    @abstractmethod
    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        """Whether to keep each update, given the reports and data sizes of the clients that sent
        them."""


class MetricRecording(ABC):
    """Lets a selector record metrics of its own in every round; it declares them in `metrics`."""

    @abstractmethod
    def measure(
        self, state: State, candidates: np.ndarray, cohort: np.ndarray, view: View
    ) -> dict[str, float]:
        """The selector's metrics of a round, by name, given what `select` received and returned."""


class Weighing(ABC):
    """Lets a selector publish its probabilities, which are recorded in every round for overlapping
    and for other clients, if any overlap. It is not told which clients overlap."""

    @abstractmethod
    def probabilities(self, state: State, candidates: np.ndarray, view: View) -> np.ndarray:
        """The probability of each candidate to be the first client drawn."""
