"""Learning rate schedules of centralized runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import Catalog, NameEncoded, parameter, parser_of
from cohort.core.lazy import lazy
from cohort.data.sampling import scaled_count

if TYPE_CHECKING:
    from torch.optim import Optimizer, lr_scheduler
else:
    lr_scheduler = lazy("torch.optim.lr_scheduler")


class Schedule(NameEncoded):
    """Changes the learning rate after every epoch, or after every batch if `by_batch`. Its state
    follows from its past calls, so that a resumed run can repeat them."""

    by_batch: ClassVar[bool] = False
    watches_loss: ClassVar[bool] = False
    """Whether it follows the validation loss."""
    epoch_parameters: ClassVar[tuple[str, ...]] = ()
    """The names of the parameters that are numbers of epochs."""

    def scaled(self, share: float) -> Schedule:
        """This schedule shrunk to a run that has only this share of the epochs."""
        counts = {name: scaled_count(getattr(self, name), share) for name in self.epoch_parameters}
        return dataclasses.replace(self, **counts)

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        """PyTorch's scheduler for a run of this many epochs with this many batches each."""
        raise NotImplementedError


class Constant(Schedule):
    """Keep the learning rate constant."""

    name: ClassVar[str] = "constant"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


@dataclass(frozen=True, kw_only=True)
class Step(Schedule):
    """Multiply the learning rate by a factor at regular intervals (StepLR)."""

    name = "step"
    epoch_parameters = ("every",)
    every: int = parameter(minimum=1, help="epochs between two steps")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="factor of each step")

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.StepLR(optimizer, step_size=self.every, gamma=self.factor)


@dataclass(frozen=True, kw_only=True)
class MultiStep(Schedule):
    """Multiply the learning rate by a factor at two epochs (MultiStepLR)."""

    name = "steps"
    epoch_parameters = ("first", "second")
    first: int = parameter(minimum=1, help="epochs before the first step")
    second: int = parameter(minimum=1, help="epochs before the second step")
    factor: float = parameter(0.1, exclusiveMinimum=0, maximum=1, help="factor of each step")

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.MultiStepLR(optimizer, [self.first, self.second], self.factor)


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
    """Multiply the learning rate by a factor when the loss stops falling (ReduceLROnPlateau)."""

    name = "plateau"
    watches_loss = True
    epoch_parameters: ClassVar[tuple[str, ...]] = ("patience",)
    patience: int = parameter(10, minimum=0, help="epochs without a lower loss before a step")
    factor: float = parameter(0.5, exclusiveMinimum=0, exclusiveMaximum=1, help="of each step")

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.ReduceLROnPlateau(optimizer, factor=self.factor, patience=self.patience)


class Cosine(Schedule):
    """Anneal the learning rate to zero along half a cosine wave (CosineAnnealingLR)."""

    name: ClassVar[str] = "cosine"

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)


@dataclass(frozen=True, kw_only=True)
class WarmRestarts(Schedule):
    """Anneal by half cosine waves, each `factor` times as long (CosineAnnealingWarmRestarts)."""

    name = "restarts"
    epoch_parameters = ("first",)
    first: int = parameter(minimum=1, help="epochs before the first restart")
    factor: int = parameter(2, minimum=1, help="how many times as long each wave is as the last")

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        return lr_scheduler.CosineAnnealingWarmRestarts(optimizer, self.first, self.factor)


class OneCycle(Schedule):
    """Raise the learning rate for three tenths of all batches, then lower it to almost zero, with
    momentum moving inversely (OneCycleLR)."""

    name = "onecycle"
    by_batch = True

    def build(self, optimizer: Optimizer, epochs: int, batches: int) -> Any:
        highest = optimizer.param_groups[0]["lr"]
        return lr_scheduler.OneCycleLR(optimizer, highest, total_steps=epochs * batches)


_CLASSES = Constant, Cosine, Exponential, OneCycle, Plateau, WarmRestarts, Step, MultiStep
SCHEDULES = Catalog("cohort.training.schedules", Schedule, _CLASSES)
parse_schedule = parser_of(SCHEDULES, "schedule")
"""Build the schedule that a name like `onecycle`, `step-30` or `plateau-patience3` describes."""
