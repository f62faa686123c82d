"""Schedules that multiply the learning rate by a factor."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.training.schedules.schedule import Schedule, fewer

if TYPE_CHECKING:
    from torch.optim import Optimizer


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """Nothing changes."""

    name: ClassVar[str] = "constant"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import LambdaLR

        return LambdaLR(optimizer, lambda epoch: 1.0)


@dataclass(frozen=True, kw_only=True)
class Step(Schedule):
    """Every so many epochs (StepLR)."""

    name: ClassVar[str] = "step"
    every: int = parameter(minimum=1, help="epochs between two steps")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="of each step")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, every=fewer(self.every, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import StepLR

        return StepLR(optimizer, step_size=self.every, gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class MultiStep(Schedule):
    """At two epochs (MultiStepLR)."""

    name: ClassVar[str] = "steps"
    first: int = parameter(minimum=1, help="epochs before the first step")
    second: int = parameter(minimum=1, help="epochs before the second step")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="of each step")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(
            self, first=fewer(self.first, share), second=fewer(self.second, share)
        )

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import MultiStepLR

        return MultiStepLR(optimizer, milestones=[self.first, self.second], gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class Exponential(Schedule):
    """After every epoch (ExponentialLR)."""

    name: ClassVar[str] = "exponential"
    factor: float = parameter(exclusiveMinimum=0, maximum=1, help="of each epoch")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, factor=self.factor ** (1 / share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import ExponentialLR

        return ExponentialLR(optimizer, gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class Plateau(Schedule):
    """When the validation loss has not fallen for a while (ReduceLROnPlateau)."""

    name: ClassVar[str] = "plateau"
    watches: ClassVar[bool] = True
    patience: int = parameter(10, minimum=0, help="epochs without a lower loss before a step")
    factor: float = parameter(0.5, exclusiveMinimum=0, exclusiveMaximum=1, help="of each step")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, patience=fewer(self.patience, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        from torch.optim.lr_scheduler import ReduceLROnPlateau

        return ReduceLROnPlateau(optimizer, factor=self.factor, patience=self.patience)
