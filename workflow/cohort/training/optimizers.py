"""What takes a client's steps."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from cohort.cell import Settings


def optimizer_for(settings: Settings, parameters: Iterable[nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """A fresh optimizer."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(parameters, lr=lr, momentum=settings.momentum, weight_decay=settings.weight_decay)
