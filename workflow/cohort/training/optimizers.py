"""What takes a client's steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from cohort.cell import Settings

if TYPE_CHECKING:
    from torch.optim import Optimizer


class Stepper(Protocol):
    """What local training asks of an optimizer."""

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> object:
        """One step along them."""


class PlainSGD:
    """The steps of `torch.optim.SGD(fused=True)`, bit for bit, for the one round that a client's optimizer lives. PyTorch's own is dear to
    make, round after round, and imports the compiler when it is first made: a second at the start of every cell."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0, weight_decay: float = 0):
        self.parameters: list[Tensor] = list(parameters)
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.velocity: dict[Tensor, Tensor] = {}

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        if not moved:
            return
        slopes = [_laid_like(parameter, parameter.grad) for parameter in moved if parameter.grad is not None]
        velocity = [self._velocity(parameter) for parameter in moved] if self.momentum else []
        torch._fused_sgd_(
            moved,
            slopes,
            velocity,
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            dampening=0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )

    def _velocity(self, parameter: Tensor) -> Tensor:
        if parameter not in self.velocity:
            self.velocity[parameter] = torch.zeros_like(parameter)
        return self.velocity[parameter]


def _laid_like(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient laid in memory as its parameter: the fused step walks through both side by side."""
    return gradient if gradient.stride() == parameter.stride() else torch.empty_like(parameter).copy_(gradient)


def stepper_for(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> Stepper:
    """A fresh optimizer for a client's round."""
    if settings.optimizer == "sgd":
        return PlainSGD(parameters, lr, settings.momentum, settings.weight_decay)
    return optimizer_for(settings, parameters, lr)


def optimizer_for(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    """A fresh optimizer that a schedule can steer."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(parameters, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay)
