"""Selectors: the base class, the abilities that some have beyond choosing, and what both see.

A selector sees the federation only through what it declares in `needs`, so that what a strategy
costs beyond training is recorded. Its memory is plain arrays in a `State`, which a checkpoint can
hold. What only some selectors do (probe clients, set quotas, filter updates, record their own
metrics) is an ability: a class to inherit from as well."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from cohort.core import components, metric

Clients = np.ndarray
"""Numbers of clients."""
State = dict[str, np.ndarray]
Reports = Mapping[str, np.ndarray]
Metrics = dict[str, float]
Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class View:
    """What a selector knows when it chooses: the numbers of `clients` and `rounds`, the size of the
    `cohort`, and the number of samples that each client holds (`sizes`).

    `label_counts` are the counts that clients reported, None unless the selector needs them.
    `reports` holds everything else that was gathered before choosing, once or in this round, by
    need: one row for each client of the federation, NaN for clients that were not asked.
    """

    clients: int
    cohort: int
    sizes: np.ndarray
    rounds: int = 1
    label_counts: np.ndarray | None = None
    reports: Reports = field(default_factory=dict)


class Selector(components.Component, ABC):
    """Chooses the cohort of each round.

    `needs` names the information it requires, as entries of `cohort.needs.NEEDS`. `metrics`
    declares the metrics that it records itself (see the ability MetricRecording), by recorded name.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    metrics: ClassVar[Mapping[str, metric.Metric]] = {}

    def reported_counts(self, label_counts: np.ndarray, rng: Rng) -> np.ndarray:
        """The label counts that clients report (client, class), if the selector needs them, given
        the true ones: the truth, unless it protects or disturbs them."""
        return label_counts

    def check(self, clients: int, cohort: int) -> None:
        """Raise ValueError if the selector cannot choose `cohort` of `clients` clients."""

    def memory(self, reserved: int, classes: int, clients: int) -> int:
        """An upper bound of the memory in bytes that the selector's state and computations take,
        for so many reserved samples; 0 if that is not worth counting."""
        return 0

    def begin(self, view: View, rng: Rng) -> State:
        """The state before the first round."""
        return {}

    @abstractmethod
    def select(self, state: State, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        """Choose the cohort: `view.cohort` distinct candidates, or fewer if the strategy gains
        nothing from more. There are at least as many candidates, all of them available."""

    def observe(self, state: State, cohort: Clients, reports: Reports, view: View) -> State:
        """The state after a round. `reports` holds what was gathered after training, by need: one
        row for each client of the cohort, NaN for clients that did not answer."""
        return state


class Screening:
    """Lets a selector choose from a pool of clients instead of all of them.

    The pool is the `candidates` that `select` receives. Needs that are gathered before choosing are
    gathered from the pool only.
    """

    def pool_size(self, clients: int, cohort: int) -> int:
        """The size of the pool, given the numbers of clients in the federation and the cohort."""
        return clients

    def draw_pool(self, candidates: Clients, view: View, rng: Rng) -> np.ndarray:
        """Draw the pool from the candidates."""
        return candidates


class Probing(Screening):
    """Lets a selector have each client of the pool train on its first `batches` before it chooses.

    `view.reports["probe_norm"]` then holds the norm of each client's update. The clients that are
    chosen continue training from the weights of their probe; where J counts epochs, after the whole
    first epoch, however few of its batches the probe took.
    """

    batches: int


class ConditionalNeeds(ABC):
    """Lets a selector gather its needs before choosing in some rounds only."""

    @abstractmethod
    def asks(self, state: State, view: View) -> bool:
        """Whether to gather the needs before choosing in this round."""


class Allocating(ABC):
    """Lets a selector decide how many samples of each class each client of the cohort trains on.
    Which ones is drawn in every round, or once without `redraw`."""

    redraw: bool = True

    @abstractmethod
    def quotas(self, cohort: Clients, view: View) -> np.ndarray:
        """The number of samples of each class to use (client of the cohort, class); more than a
        client holds means all that it holds."""


class Filtering(ABC):
    """Lets a selector exclude some updates from the aggregation."""

    @abstractmethod
    def keep(self, reports: Reports, sizes: np.ndarray) -> np.ndarray:
        """Whether to keep each update, given the reports and data sizes of those who sent them."""


class UpdateWeighing(ABC):
    """Lets a selector say how much each update counts, and draw a client several times in a round.
    Such a client trains once, and its update counts with the sum of its weights."""

    @abstractmethod
    def weights(self, state: State, candidates: Clients, cohort: Clients, view: View) -> np.ndarray:
        """The weight of each draw's update (draw), above 0, given what `select` received and
        returned. The server adds the weighted updates; for an average the weights add up to 1."""


class MetricRecording(ABC):
    """Lets a selector record metrics of its own in every round; it declares them in `metrics`."""

    @abstractmethod
    def measure(self, state: State, candidates: Clients, cohort: Clients, view: View) -> Metrics:
        """The selector's metrics of a round, by name, given what `select` received and returned."""


class ProbabilityRecording(ABC):
    """Lets a selector publish its probabilities, which are recorded in every round for overlapping
    and for other clients, if any overlap. It is not told which clients overlap."""

    @abstractmethod
    def probabilities(self, state: State, candidates: Clients, view: View) -> np.ndarray:
        """The probability of each candidate to be the first client drawn."""
