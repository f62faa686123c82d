"""The base of all objectives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The local loss of a client: the mean loss of a batch's samples, plus a proximal term if
    `is_proximal`.

    Its methods handle one client, in tensor operations without control flow on values, so that a
    trainer can apply `vmap` over clients.
    """

    is_proximal: ClassVar[bool] = False
    """Whether `proximal_term` is added to the loss."""

    def facts(self, counts: Tensor) -> Tensor:
        """What the loss needs to know of a client: one number per class, computed once from its
        label counts."""
        return counts

    def losses(self, outputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        """The loss of each sample of a batch, given the model's outputs, the client's `facts` and
        the bias of the output layer."""
        raise NotImplementedError

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """The penalty for the distance of the parameters to the global ones (`start`)."""
        raise NotImplementedError


def output_bias(model: nn.Module) -> Tensor:
    """The bias of the output layer, which is the last parameter of every model."""
    *_, bias = model.parameters()
    return bias
