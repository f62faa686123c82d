"""Schedules that follow a cosine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.training.schedules.schedule import Schedule, fewer

if TYPE_CHECKING:
    from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """Down to zero along half a wave (CosineAnnealingLR)."""

    name: ClassVar[str] = "cosine"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import CosineAnnealingLR

        return CosineAnnealingLR(optimizer, T_max=epochs)


@dataclass(frozen=True, kw_only=True)
class WarmRestarts(Schedule):
    """Down along half a wave, up again at once, and each next wave so many times as long (CosineAnnealingWarmRestarts)."""

    name: ClassVar[str] = "restarts"
    first: int = parameter(minimum=1, help="epochs of the first wave")
    factor: int = parameter(2, minimum=1, help="how much longer each wave is than the one before")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, first=fewer(self.first, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

        return CosineAnnealingWarmRestarts(optimizer, T_0=self.first, T_mult=self.factor)


@dataclass(frozen=True, kw_only=True)
class OneCycle(Schedule):
    """Up to the learning rate for three tenths of all batches, then down to almost nothing, and momentum the other way (OneCycleLR)."""

    name: ClassVar[str] = "onecycle"
    by_batch: ClassVar[bool] = True

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import OneCycleLR

        return OneCycleLR(
            optimizer, max_lr=optimizer.param_groups[0]["lr"], total_steps=epochs * batches
        )
