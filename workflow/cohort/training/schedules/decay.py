"""Schedules that multiply the learning rate by a factor."""

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
class Constant(Schedule):
    """Keep the learning rate constant."""

    name: ClassVar[str] = "constant"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


@dataclass(frozen=True, kw_only=True)
class Step(Schedule):
    """Multiply the learning rate by a factor at regular intervals (StepLR)."""

    name: ClassVar[str] = "step"
    every: int = parameter(minimum=1, help="epochs between two steps")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="factor of each step")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, every=scale_epochs(self.every, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.StepLR(optimizer, step_size=self.every, gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class MultiStep(Schedule):
    """Multiply the learning rate by a factor at two epochs (MultiStepLR)."""

    name: ClassVar[str] = "steps"
    first: int = parameter(minimum=1, help="epochs before the first step")
    second: int = parameter(minimum=1, help="epochs before the second step")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="factor of each step")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(
            self, first=scale_epochs(self.first, share), second=scale_epochs(self.second, share)
        )

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.MultiStepLR(
            optimizer, milestones=[self.first, self.second], gamma=self.factor
        )


@dataclass(frozen=True, kw_only=True)
class Exponential(Schedule):
    """Multiply the learning rate by a factor after every epoch (ExponentialLR)."""

    name: ClassVar[str] = "exponential"
    factor: float = parameter(exclusiveMinimum=0, maximum=1, help="factor of each epoch")

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, factor=self.factor ** (1 / share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.ExponentialLR(optimizer, gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class Plateau(Schedule):
    """Multiply the learning rate by a factor when the validation loss stops falling
    (ReduceLROnPlateau)."""

    name: ClassVar[str] = "plateau"
    watches: ClassVar[bool] = True
    patience: int = parameter(10, minimum=0, help="epochs without a lower loss before a step")
    factor: float = parameter(
        0.5, exclusiveMinimum=0, exclusiveMaximum=1, help="factor of each step"
    )

    def scaled(self, share: float) -> Schedule:
        return dataclasses.replace(self, patience=scale_epochs(self.patience, share))

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.ReduceLROnPlateau(optimizer, factor=self.factor, patience=self.patience)
