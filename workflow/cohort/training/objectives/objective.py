"""The base of all objectives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor, nn


class Coefficients(NamedTuple):
    """An objective as numbers: the mean cross-entropy of logits that follow from the outputs class
    by class, and a proximal term.

    The logits are scale * (output - bias) + bias + shift, where None stands for 1 and 0. The term
    is mu / 2 times the squared distance of the parameters to the global ones.
    """

    scale: Tensor | None = None
    shift: Tensor | None = None
    mu: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The local loss of a client: the mean loss of a batch's samples, plus a proximal term if
    `is_proximal`.

    Its methods handle one client, in tensor operations without control flow on values, so that a
    trainer can apply `vmap` over clients.
    """

    is_proximal: ClassVar[bool] = False
    """Whether `proximal_term` is added to the loss."""

    def label_statistics(self, counts: Tensor) -> Tensor:
        """One number per class that the loss needs of a client, from the client's label counts."""
        return counts

    def losses(self, outputs: Tensor, targets: Tensor, statistics: Tensor, bias: Tensor) -> Tensor:
        """The loss of each sample of a batch, given the model's outputs, the client's
        `label_statistics` and the bias of the output layer."""
        raise NotImplementedError

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """The penalty for the distance of the parameters to the global ones (`start`)."""
        raise NotImplementedError

    def coefficients(self, statistics: Tensor) -> Coefficients | None:
        """The logit scale, logit shift and proximal weight that define this loss; None if it is of
        another form, which the native trainer cannot train. A subclass that changes the loss must
        override this."""
        return None


def native_coefficients(objective: Objective, label_statistics: Tensor) -> Coefficients | None:
    """The coefficients by which native code computes a client's loss, given its label statistics;
    None if the objective has none, or if a subclass has changed the loss without giving its own."""
    for kind in type(objective).__mro__:
        if "coefficients" in vars(kind):
            return objective.coefficients(label_statistics)
        if {"label_statistics", "losses", "logits", "proximal_term"} & vars(kind).keys():
            return None
    raise AssertionError(f"{objective} is not an objective")


def output_bias(model: nn.Module) -> Tensor:
    """The bias of the output layer, which is the last parameter of every model."""
    *_, bias = model.parameters()
    return bias
