"""What a model is. Files of this package import torch inside `build`, so that planning a study needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import Component

if TYPE_CHECKING:
    from torch import nn

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Model(Component):
    """A network that can be built for samples of a shape and a number of classes."""

    kinds: ClassVar[tuple[str, ...]] = ("images",)
    """What it can take samples of: images, text, table."""

    kept: ClassVar[float] = 3
    """Times what its layers put out for a batch, the memory of a step: the outputs, their gradients, what the library works with."""

    def check(self, shape: Shape) -> None:
        """Raise ValueError when it cannot take samples of this shape."""

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        """Multiplications of one forward pass of one sample: what a cost estimate is made from."""
        raise NotImplementedError

    def weights(self, shape: Shape, classes: int) -> int:
        """How many weights the network trains: what a client sends, and what memory each of its copies takes, statistics of normalizations
        aside."""
        raise NotImplementedError

    def outputs(self, shape: Shape) -> int:
        """About how many numbers its layers put out for one sample (the last few aside), which training keeps until the step is done."""
        raise NotImplementedError

    def build(self, shape: Shape, classes: int) -> nn.Module:
        """The network, with the initial weights that torch's current generator gives."""
        raise NotImplementedError
