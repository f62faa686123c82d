"""The base of all needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from cohort.core.components import Component


class EvaluationContext(Protocol):
    """What a need can evaluate: the global model and local models, on reserved test samples and
    on clients' own. Each evaluated sample is counted in the round's ledger."""

    @property
    def clients(self) -> np.ndarray:
        """The clients from which the need is gathered, in the order of the answers."""

    def label_counts(self) -> np.ndarray:
        """How many samples of each class each client reports: the truth, or with noise or lies."""

    def overlapping(self) -> np.ndarray:
        """Whether each client holds samples that others hold too, as 1 or 0."""

    def global_losses(self) -> np.ndarray:
        """The mean loss of the global model on each client's own training samples."""

    def reserved_losses(self) -> np.ndarray:
        """The mean loss of each client's local model on the reserved test samples."""

    def reserved_predictions(self) -> np.ndarray:
        """Each local model's softmax outputs on the reserved test samples: (client, sample,
        class)."""

    def reserved_correct(self) -> np.ndarray:
        """Whether each local model classifies each reserved test sample correctly, as 1 or 0:
        (client, sample)."""

    def training_losses(self) -> np.ndarray:
        """The mean loss of each client's local steps."""

    def local_accuracies(self) -> np.ndarray:
        """The accuracy of each client's local model on its own training samples."""

    def mean_soft_labels(self) -> np.ndarray:
        """Each local model's softmax outputs, averaged over its own client's samples."""


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
