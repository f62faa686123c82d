"""What an objective is: the loss of one local batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.components import Component

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The client's local loss."""

    pulls: ClassVar[bool] = False
    """Whether something is added that depends on how far the weights have gone."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        raise NotImplementedError

    def pull(self, parameters: Iterable[Tensor], start: Iterable[Tensor]) -> Tensor:
        """What is added for the way from the weights that the client began with."""
        raise NotImplementedError
