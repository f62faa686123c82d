"""The base of all needs, and what one may measure with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor, nn


class ModelResults(Protocol):
    """The results of one model on one set of samples. A number is computed when it is first asked
    for, and its samples are then counted in the round's ledger."""

    @property
    def loss(self) -> float:
        """The mean cross-entropy; NaN without samples."""

    @property
    def accuracy(self) -> float:
        """The share of samples that are classified correctly, from 0 to 1; NaN without samples."""

    @property
    def softmax(self) -> np.ndarray:
        """The softmax outputs (sample, class) in float64."""

    @property
    def mean_softmax(self) -> np.ndarray:
        """The mean softmax output (class) in float64; NaN without samples."""

    @property
    def labels(self) -> np.ndarray:
        """The true class of each sample (sample)."""

    @property
    def inputs(self) -> Tensor:
        """The network's inputs (sample, ...), for measures not offered here."""

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights of the model."""


class EvaluationContext(Protocol):
    """Everything that a need can measure with: the federation, the round, and the results of global
    and local models, one for each of `clients` and in their order."""

    @property
    def clients(self) -> np.ndarray:
        """The clients of whom the need is gathered, in the order of the rows to return."""

    @property
    def network(self) -> nn.Module:
        """The module that computes with any of the weights here."""

    def label_counts(self) -> np.ndarray:
        """The number of samples of each class that each client reports (client, class): the truth,
        or with noise or lies."""

    def overlapping(self) -> np.ndarray:
        """Whether each client holds samples that others hold too, as 1 or 0 (client)."""

    def training_losses(self) -> np.ndarray:
        """The mean loss of each client's local steps (client). Only for needs gathered after
        training."""

    def global_on_own(self) -> Iterable[ModelResults]:
        """Results of the global model on each client's training samples; for needs gathered
        before."""

    def global_on_batch(self) -> Iterable[ModelResults]:
        """Results of the global model on a random batch of each client's own training samples, as
        large as one of a local step; only for needs gathered before choosing."""

    def updates(self) -> Mapping[str, np.ndarray]:
        """Each trainable parameter's change in local training, by name: (client, *parameter). Only
        for needs gathered after training."""

    def samples_per_round(self) -> np.ndarray:
        """How many different samples each client trains on in a round with all of its work."""

    def durations(self) -> np.ndarray:
        """The simulated seconds of each client's round; of one with all of J for needs gathered
        once."""

    def local_on_own(self) -> Iterable[ModelResults]:
        """Results of local models on their clients' training samples; only for needs gathered
        after."""

    def local_on_last_batch(self) -> Iterable[ModelResults]:
        """Each local model on the batch of its client's last local step, which has no samples if
        there was none; for needs gathered after."""

    def local_on_reserved(self) -> Iterable[ModelResults]:
        """Results of each local model on the reserved test samples; only for needs gathered after
        training."""

    def reserved_losses(self) -> np.ndarray:
        """The losses of `local_on_reserved` (client), which some trainers compute all at once."""


@dataclass(frozen=True, kw_only=True)
class Need(Component):
    """Information that a selector requires, how to measure it, and what it costs to send.

    `gathered` says when and from whom: `once` from all clients before the first round; `before`
    choosing each cohort, from the pool, which receives the global model; `after` training, from the
    clients of the cohort that answered.
    """

    gathered: ClassVar[Literal["once", "before", "after"]]
    reserved: ClassVar[bool] = False
    """Whether it evaluates models on reserved test samples, which requires a `reserve`."""
    evaluates: ClassVar[bool] = True
    """Whether it evaluates a model, which takes time; a training loss, say, is there anyhow."""

    def upload(self, classes: int) -> int:
        """The size in bytes of what one client sends for this need."""
        return 0

    def measure(self, context: EvaluationContext) -> np.ndarray:
        """Measure what is known of each of the context's clients: one row for each."""
        raise NotImplementedError
