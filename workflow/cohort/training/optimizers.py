"""What takes a client's steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

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
    """The steps of `torch.optim.SGD`, bit for bit, for the one round that a client's optimizer lives. PyTorch's own is dear to make, round
    after round, and imports the compiler when it is first made: a second at the start of every cell."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0, weight_decay: float = 0):
        self.parameters, self.lr, self.momentum, self.weight_decay = list(parameters), lr, momentum, weight_decay
        self.velocity: dict[nn.Parameter, torch.Tensor] = {}

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.parameters:
            change = parameter.grad
            if change is None:
                continue
            if self.weight_decay:
                change = change.add(parameter, alpha=self.weight_decay)
            if self.momentum:
                kept = self.velocity.get(parameter)
                change = self.velocity[parameter] = change.clone() if kept is None else kept.mul_(self.momentum).add_(change)
            parameter.add_(change, alpha=-self.lr)


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
