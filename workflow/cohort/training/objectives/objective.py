"""What an objective is: the loss of one local batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cohort.components import Component

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Objective(Component):
    """The client's local loss."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        raise NotImplementedError
