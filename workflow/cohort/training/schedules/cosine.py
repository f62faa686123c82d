"""Schedules that follow a cosine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.core.lazy import lazy
from cohort.training.schedules.schedule import Schedule, scale_epochs

if TYPE_CHECKING:
    from torch.optim import Optimizer, lr_scheduler
else:
    lr_scheduler = lazy("torch.optim.lr_scheduler")


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """Anneal the learning rate to zero along half a cosine wave (CosineAnnealingLR)."""

    name: ClassVar[str] = "cosine"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)


@dataclass(frozen=True, kw_only=True)
class WarmRestarts(Schedule):
    """Anneal along half a cosine wave, then restart with a wave `factor` times as long
    (CosineAnnealingWarmRestarts)."""

    name: ClassVar[str] = "restarts"
    first: int = parameter(minimum=1, help="epochs before the first restart")
    factor: int = parameter(
        2, minimum=1, help="how many times as long each wave is as the one before"
    )

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, first=scale_epochs(self.first, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.CosineAnnealingWarmRestarts(
            optimizer, T_0=self.first, T_mult=self.factor
        )


@dataclass(frozen=True, kw_only=True)
class OneCycle(Schedule):
    """Raise the learning rate for three tenths of all batches, then lower it to almost zero, with
    momentum moving inversely (OneCycleLR)."""

    name: ClassVar[str] = "onecycle"
    by_batch: ClassVar[bool] = True

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.OneCycleLR(
            optimizer, max_lr=optimizer.param_groups[0]["lr"], total_steps=epochs * batches
        )
