"""What an objective is: the loss of a client's samples, and perhaps a pull."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The client's local loss: of a batch the mean of its samples' losses, plus the pull if there is one. It is written for one client, as
    tensor algebra without a look at single numbers, so that a trainer can do many clients at once.
    """

    is_proximal: ClassVar[bool] = False
    """Whether something is added that depends on how far the weights have gone."""

    def facts(self, counts: Tensor) -> Tensor:
        """What it has to know of a client, a number for each class, worked out once from how many samples of each class the client has."""
        return counts

    def losses(self, outputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor) -> Tensor:
        """The loss of each sample of a batch. `bias` is that of the output layer."""
        raise NotImplementedError

    def proximal_term(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """What is added for the way from the weights that the client began with."""
        raise NotImplementedError


def output_bias(model: nn.Module) -> Tensor:
    """Of the output layer, one number per class: the last parameter of every model."""
    *_, bias = model.parameters()
    return bias
