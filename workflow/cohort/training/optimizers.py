"""What takes a client's steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from cohort.cell.settings import Settings

if TYPE_CHECKING:
    from torch.optim import Optimizer


class Stepper(Protocol):
    """What local training asks of an optimizer."""

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> object:
        """One step along them."""


class PlainSGD:
    """The steps of `torch.optim.SGD`, but for rounding, for the one round that a client's optimizer lives; it uses the gradients up.
    PyTorch's own is dear to make, round after round, and imports the compiler when it is first made: a second as a cell starts."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        momentum: float = 0,
        weight_decay: float = 0,
    ):
        self.parameters: list[Tensor] = list(parameters)
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.velocity: list[Tensor] = []

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        if not moved:
            return
        changes = [parameter.grad for parameter in moved if parameter.grad is not None]
        if self.weight_decay:
            torch._foreach_add_(changes, moved, alpha=self.weight_decay)
        if self.velocity:
            torch._foreach_add_(changes, self.velocity, alpha=self.momentum)
        if self.momentum:
            self.velocity = changes
        torch._foreach_add_(moved, changes, alpha=-self.lr)


def stepper_for(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> Stepper:
    """A fresh optimizer for a client's round."""
    if settings.optimizer == "sgd":
        return PlainSGD(parameters, lr, settings.momentum, settings.weight_decay)
    return optimizer_for(settings, parameters, lr)


def optimizer_for(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    """A fresh optimizer that a schedule can steer."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        parameters, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )
