"""Federated learning: choose a cohort, train it, merge its updates, and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.components import parameter
from cohort.core.metric import Metric
from cohort.selection.abilities import Probing
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.cell import Cell

OVERLAP_METRICS = {
    "overlapping_chosen": Metric("Cohort that overlaps", "%", 100, digits=1),
    "overlapping_probability": Metric("Mass on overlapping clients", "%", 100),
    "overlapping_preference": Metric("Preference for overlapping", partial=True),
}
PROFILE_METRICS = {
    "step_accuracy": Metric(
        "Accuracy of a minibatch", "%", 100, digits=2, better="high", by="step"
    ),
    "step_loss": Metric("Loss of a minibatch", better="low", by="step"),
    "step_seconds": Metric("Time of a local step", "ms", 1000, better="low", by="step"),
    "batch_accuracy": Metric(
        "Mean accuracy of a client's minibatches", "%", 100, digits=2, better="high", by="client"
    ),
    "batch_loss": Metric("Mean loss of a client's minibatches", better="low", by="client"),
    "batch_seconds": Metric(
        "Mean time of a client's local steps", "ms", 1000, better="low", by="client"
    ),
}
"""What follows from the notes of profiled runs: by step within a client's work, and by client."""


@dataclass(frozen=True, kw_only=True)
class Federated(Procedure):
    """Federated averaging: the loop of the papers' algorithm boxes, with a selector, an objective,
    a server rule and a participation of choice."""

    name: ClassVar[str] = "federated"
    metrics: ClassVar[Mapping[str, Metric]] = OVERLAP_METRICS | PROFILE_METRICS
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native", "batched")
    simulates_time: ClassVar[bool] = True
    profiled: int = parameter(
        0,
        minimum=0,
        maximum=1,
        help="1: record loss, accuracy and seconds of every local step; clients are then trained "
        "by plain PyTorch, one after another",
    )

    def usable_trainers(self) -> tuple[str, ...]:
        return ("serial",) if self.profiled else self.trainers

    def check(self, cell: Cell) -> None:
        self.check_constant(cell)
        server, optimizer = cell.server, cell.settings.optimizer
        if not server.assumes_sgd:
            return
        if optimizer != "sgd":
            raise ValueError(
                f"with the server rule '{server.name}' assumes clients that take steps of SGD, "
                f"but optimizer is '{optimizer}'"
            )
        if isinstance(cell.selector, Probing):
            raise ValueError(
                f"with the server rule '{server.name}' assumes clients that take all their steps "
                f"at once, but the selector '{cell.selector.name}' probes them first"
            )
