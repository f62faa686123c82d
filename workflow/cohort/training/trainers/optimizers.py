"""Optimizers of local training, and the state of those that live across rounds."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from cohort.settings import Settings
from cohort.training.updates import Weights


class PlainSGD:
    """`torch.optim.SGD` up to rounding, cheaper to create for each client and round. It overwrites
    the gradients.

    PyTorch's own takes longer to create, and the first one imports PyTorch's compiler, which takes
    a second.
    """

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
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step on every parameter that has a gradient."""
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


LocalOptimizer = PlainSGD | Optimizer


def local_optimizer(
    settings: Settings, parameters: Iterable[nn.Parameter], lr: float
) -> LocalOptimizer:
    """Create an optimizer for one client's local work in one round."""
    if settings.optimizer == "sgd":
        return PlainSGD(parameters, lr, settings.momentum, settings.weight_decay)
    return torch_optimizer(settings, parameters, lr)


def torch_optimizer(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    """Create a PyTorch optimizer, which works with learning rate schedulers."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(
        parameters, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay
    )


def optimizer_state(optimizer: Optimizer, model: nn.Module) -> Weights:
    """The state of a PyTorch optimizer as tensors named `{parameter}/{key}`."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value).clone()
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
        if value is not None
    }


def load_optimizer_state(optimizer: Optimizer, model: nn.Module, state: Weights) -> None:
    """Restore the state that `optimizer_state` returned."""
    parameters = dict(model.named_parameters())
    for path, value in state.items():
        name, _, key = path.rpartition("/")
        optimizer.state[parameters[name]][key] = value.clone()
