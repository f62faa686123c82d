"""The base of everything that a selector may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from cohort.core.components import Component


class EvaluationContext(Protocol):
    """Everything a need may look at. Each evaluated sample is entered in the round's ledger."""

    @property
    def clients(self) -> np.ndarray:
        """The clients that are asked."""

    def label_counts(self) -> np.ndarray:
        """How many samples of each class each client reports to hold."""

    def global_losses(self) -> np.ndarray:
        """The mean loss of the global model on each client's own training samples."""

    def reserved_losses(self) -> np.ndarray:
        """The mean loss of each client's local model on the reserved test samples."""

    def reserved_predictions(self) -> np.ndarray:
        """Each local model's softmax outputs on the reserved test samples (client, sample, class)."""

    def mean_soft_labels(self) -> np.ndarray:
        """Each local model's softmax outputs, averaged over its own client's samples."""


@dataclass(frozen=True, kw_only=True)
class Need(Component):
    """Something that a selector must be told, how it is measured, and what it costs to send.

    `gathered` says when, and from whom: `once` from all clients before the first round, `before`
    from the pool before each choice (with the global model), `after` training from the clients of
    the cohort that answered.
    """

    gathered: ClassVar[Literal["once", "before", "after"]]
    reserved: ClassVar[bool] = False
    """Whether it evaluates models on reserved test samples, so that `reserve` must be at least 1."""

    def upload(self, classes: int) -> int:
        """How many bytes a client sends to answer once."""
        return 0

    def measure(self, context: EvaluationContext) -> np.ndarray:
        """The answers, one row for each client that is asked."""
        raise NotImplementedError
