"""What a schedule is: one of torch's own, with parameters that a study names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.component_names import Named

if TYPE_CHECKING:
    from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class Schedule(Named):
    """Changes the learning rate after every epoch, or after every batch. It keeps nothing that its past calls do not give back."""

    by_batch: ClassVar[bool] = False
    watches: ClassVar[bool] = False
    """Whether it is told the validation loss."""

    def scaled(self, share: float) -> Schedule:
        """The same schedule for a run of a share of the epochs."""
        return self

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        """Torch's schedule for a run of so many epochs, each of so many batches."""
        raise NotImplementedError


def fewer(count: int, share: float) -> int:
    """So many epochs at a share of all, at least one."""
    return max(1, round(count * share))
