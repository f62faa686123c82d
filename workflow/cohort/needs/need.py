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
    """One model on one set of samples. A number is computed when it is first asked for, and its
    samples are then counted in the round's ledger."""

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
        """The true classes (sample)."""

    @property
    def inputs(self) -> Tensor:
        """The network's inputs, for measures that the other properties do not offer."""

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """The weights of the model."""


class EvaluationContext(Protocol):
    """Everything that a need can measure with: the federation, the round, and the results of global
    and local models, one for each of `clients` and in their order."""

    @property
    def clients(self) -> np.ndarray:
        """The clients from which the need is gathered, in the order of the answers."""

    @property
    def network(self) -> nn.Module:
        """The network to which all weights belong."""

    def label_counts(self) -> np.ndarray:
        """The number of samples of each class that each client reports (client, class): the truth,
        or with noise or lies."""

    def overlapping(self) -> np.ndarray:
        """Whether each client holds samples that others hold too, as 1 or 0."""

    def training_losses(self) -> np.ndarray:
        """The mean loss of each client's local steps."""

    def global_on_own(self) -> Iterable[ModelResults]:
        """The global model on each client's own training samples; for needs gathered before."""

    def global_on_batch(self) -> Iterable[ModelResults]:
        """The global model on a random batch of each client's own training samples, as large as one
        of a local step; for needs gathered before."""

    def updates(self) -> Mapping[str, np.ndarray]:
        """Each trainable parameter's change in local training, by name: (client, *parameter). Only
        for needs gathered after training."""

    def samples_per_round(self) -> np.ndarray:
        """How many different samples each client trains on in a round with all of its work."""

    def durations(self) -> np.ndarray:
        """The simulated seconds of each client's round; those of a whole one for needs gathered
        once."""

    def local_on_own(self) -> Iterable[ModelResults]:
        """Each local model on its client's own training samples; for needs gathered after."""

    def local_on_last_batch(self) -> Iterable[ModelResults]:
        """Each local model on the batch of its client's last local step, which has no samples if
        there was none; for needs gathered after."""

    def local_on_reserved(self) -> Iterable[ModelResults]:
        """Results of each local model on the reserved test samples; only for needs gathered after
        training."""

    def reserved_losses(self) -> np.ndarray:
        """The losses of `local_on_reserved`, which some trainers compute for all models at once."""


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
        """The size of one client's answer in bytes."""
        return 0

    def measure(self, context: EvaluationContext) -> np.ndarray:
        """The answers, one row for each of the context's clients."""
        raise NotImplementedError
