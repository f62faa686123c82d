"""Half the learning rate after each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.lazy import lazy
from cohort.training.schedules import Schedule

if TYPE_CHECKING:
    from torch.optim import Optimizer, lr_scheduler
else:
    lr_scheduler = lazy("torch.optim.lr_scheduler")


@dataclass(frozen=True, kw_only=True)
class Halving(Schedule):
    """Multiplies the learning rate by 1/2."""

    name: ClassVar[str] = "halving"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
