"""The base of all learning rate schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.component_names import NameEncoded

if TYPE_CHECKING:
    from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class Schedule(NameEncoded):
    """Changes the learning rate after every epoch, or after every batch if `by_batch`. Its state
    follows from its past calls, so that a resumed run can repeat them."""

    by_batch: ClassVar[bool] = False
    watches: ClassVar[bool] = False
    """Whether it follows the validation loss."""

    def scaled(self, share: float) -> Schedule:
        """This schedule shrunk to a run that has only this share of the epochs."""
        return self

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        """PyTorch's scheduler for a run of this many epochs with this many batches each."""
        raise NotImplementedError


def scale_epochs(count: int, share: float) -> int:
    """Scale a number of epochs by a share, rounded but at least one."""
    return max(1, round(count * share))
