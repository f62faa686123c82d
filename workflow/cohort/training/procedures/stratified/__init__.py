"""Stratify: the server schedules labels, so that every epoch has the same share of each, and asks
clients for samples of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.training.procedures.procedure import C, Procedure
from cohort.training.schedules import scale_epochs

if TYPE_CHECKING:
    from cohort.models import Model
    from cohort.settings import Settings
    from cohort.training.cell import Cell

SINGLE_LR = 0.01  # of the single samples of a hybrid run, for which no number is printed
PLAIN_SGD: dict[str, Any] = {
    **{"lr_decay": 1.0, "schedule": "constant", "optimizer": "sgd"},
    **{"momentum": 0.0, "weight_decay": 0.0, "clip": 0.0},
}
TASKS = Metric("Tasks of an epoch", digits=0, better="low", whole=True)
TRANSFERS = Metric("Transfers of the model between clients", digits=0, better="low", whole=True)
CONTRIBUTIONS = Metric("Clients' gradients in an epoch", digits=0, better="low", whole=True)


@dataclass(frozen=True, kw_only=True)
class Stratified(Procedure):
    """Base of the procedures with a label schedule. In an epoch each label is scheduled as often as
    there are samples of it, but no label more often than the median one."""

    round_name: ClassVar[str] = "Epoch"
    weighted: int = parameter(
        0, minimum=0, maximum=1, help="1: choose clients by how many samples of a label they hold"
    )
    uniform: int = parameter(
        0, minimum=0, maximum=1, help="1: schedule all labels equally often, the mean count"
    )

    def check(self, cell: Cell) -> None:
        self.check_plain(cell)
        if cell.settings.J != "J1e":
            raise ValueError(
                f"has a schedule of one epoch in a round: J is {cell.settings.J}, not J1e"
            )

    def schedule_options(self) -> dict[str, bool]:
        """The parameters that every label schedule takes."""
        return {"weighted": bool(self.weighted), "uniform": bool(self.uniform)}


@dataclass(frozen=True, kw_only=True)
class ChunkedStratified(Stratified):
    """Base of the procedures that assign the labels of single samples in chunks (Algorithm 1)."""

    science: ClassVar[int] = 2  # a client counts as sent the model only if it lacks it
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")  # of single samples
    chunk: int = parameter(5, minimum=1, help="labels that are assigned to clients at once")
    retained: float = parameter(
        0.3,
        exclusiveMinimum=0,
        maximum=1,
        help="share of all clients among whom each label of a chunk is assigned",
    )

    def version(self) -> int:
        """One more for other shares than the default, which were rounded wrongly (0.28 of 25 to
        8)."""
        return self.science + (self.retained != ChunkedStratified.retained)


@dataclass(frozen=True, kw_only=True)
class StratifiedSingle(ChunkedStratified):
    """One sample per step, by the model that clients hand on to each other (Algorithms 1 and 3)."""

    name: ClassVar[str] = "stratified-single"
    metrics: ClassVar[Mapping[str, Metric]] = {"tasks": TASKS, "model_transfers": TRANSFERS}

    def check(self, cell: Cell) -> None:
        super().check(cell)
        check_handed_on(cell.settings)
        if cell.settings.batch != 1:
            raise ValueError(f"takes one sample per step: batch is {cell.settings.batch}, not 1")


@dataclass(frozen=True, kw_only=True)
class StratifiedBatch(Stratified):
    """Batches to which clients contribute sums of gradients; the server takes the step (Algorithms
    2 and 4). Batch normalization takes its statistics from the whole batch."""

    name: ClassVar[str] = "stratified-batch"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "contributions": CONTRIBUTIONS,
        "learning_rate": Metric("Learning rate", digits=5),
    }

    def check(self, cell: Cell) -> None:
        super().check(cell)
        self.check_undecayed(cell)

    def science_with(self, model: type[Model]) -> int:
        """One more for models with batch normalization: the bytes of their sums are counted."""
        return self.version() + model.batch_norm


@dataclass(frozen=True, kw_only=True)
class StratifiedHybrid(ChunkedStratified):
    """Epochs of batches, then epochs of single samples (section III-D: a model is pretrained by
    batches, and goes on learning from single samples once it is deployed).

    The batch, learning rate, schedule and optimizer of a cell are those of its batches; the
    schedule ends with them. Single samples take plain SGD at a constant learning rate.
    """

    name: ClassVar[str] = "stratified-hybrid"
    metrics: ClassVar[Mapping[str, Metric]] = {
        **StratifiedBatch.metrics,
        **StratifiedSingle.metrics,
    }
    epochs: int = parameter(minimum=1, help="epochs of batches, the first ones")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        self.check_undecayed(cell)
        if self.epochs > cell.settings.rounds:
            raise ValueError(
                f"has {self.epochs} epochs of batches, but rounds is {cell.settings.rounds}"
            )

    def science_with(self, model: type[Model]) -> int:
        return self.version() + model.batch_norm

    def scaled(self, share: float) -> StratifiedHybrid:
        return replace(self, epochs=scale_epochs(self.epochs, share))

    def phases(self, cell: C) -> Sequence[C]:
        how = {"weighted": self.weighted, "uniform": self.uniform}
        batch = StratifiedBatch(**how)
        single = StratifiedSingle(chunk=self.chunk, retained=self.retained, **how)
        first = replace(cell.settings, procedure=str(batch), rounds=self.epochs)
        rounds, sgd = cell.settings.rounds - self.epochs, {"batch": 1, "lr": SINGLE_LR} | PLAIN_SGD
        later = replace(cell.settings, procedure=str(single), rounds=rounds, **sgd)
        return [replace(cell, settings=first), replace(cell, settings=later)]


@dataclass(frozen=True, kw_only=True)
class Sequential(Procedure):
    """Sequential federated learning (Li and Lyu, 2023): in each round all clients train one after
    another, in random order, each from where the one before it ended. Nothing is averaged."""

    name: ClassVar[str] = "sequential"
    science: ClassVar[int] = 2  # the server sends the model to the first client only
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native")
    metrics: ClassVar[Mapping[str, Metric]] = {"model_transfers": TRANSFERS}

    def check(self, cell: Cell) -> None:
        self.check_plain(cell)
        check_handed_on(cell.settings)


def check_handed_on(settings: Settings) -> None:
    """Raise ValueError unless a client needs nothing but the weights to go on."""
    if settings.schedule != "constant":
        raise ValueError(f"follows lr_decay, not the schedule '{settings.schedule}'; leave it out")
    if settings.optimizer != "sgd" or settings.momentum:
        raise ValueError("hands on weights alone: the optimizer must be SGD without momentum")
