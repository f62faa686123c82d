"""Residual blocks, whose inputs are added to what their layers make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.nn import functional
else:
    nn, functional = map(lazy, ("torch.nn", "torch.nn.functional"))


def residual(*layers: nn.Module, stride: int = 1, new_channels: int = 0) -> nn.Module:
    """Build a module that adds its inputs to the outputs of some layers.

    Where these take every `stride`-th pixel and put out `new_channels` channels more, so does the
    shortcut: half of the new channels come before the others, half behind them, and all are zero
    (option A of He et al., 2016). It has no weights.
    """

    class Residual(nn.Module):
        """Adds a shortcut from its input to the output of its layers."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*layers)

        def forward(self, images: Tensor) -> Tensor:
            taken, new = images[:, :, ::stride, ::stride], new_channels // 2
            shortcut = functional.pad(taken, (0, 0, 0, 0, new, new)) if new else taken
            total: Tensor = self.layers(images) + shortcut
            return total

    return Residual()
