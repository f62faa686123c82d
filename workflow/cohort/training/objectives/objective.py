"""What an objective is: the loss of one local batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.components import Component

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The client's local loss."""

    pulls: ClassVar[bool] = False
    """Whether something is added that depends on how far the weights have gone."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        raise NotImplementedError

    def for_client(self, labels: Tensor, model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
        """The loss for a client whose samples have these labels, for an objective that looks at them."""
        return self.loss

    def pull(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """What is added for the way from the weights that the client began with."""
        raise NotImplementedError


def output_bias(model: nn.Module) -> Tensor:
    """Of the output layer, one number per class: the last parameter of every model."""
    *_, bias = model.parameters()
    return bias
