"""Centralized training: one model on all data. What federated runs are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.metric import Metric
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.cell import Cell


@dataclass(frozen=True, kw_only=True)
class Centralized(Procedure):
    """Training of one client with all data: a round is an epoch, and the optimizer lives on from
    epoch to epoch and follows a learning rate schedule."""

    name: ClassVar[str] = "centralized"
    round_name: ClassVar[str] = "Epoch"
    validates_every_round: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {"learning_rate": Metric("Learning rate", digits=5)}

    def check(self, cell: Cell) -> None:
        settings = cell.settings
        if (settings.clients, settings.cohort) != (1, 1):
            raise ValueError(
                "trains one client that holds everything: clients and cohort must be 1"
            )
        self.check_plain(cell)
        self.check_undecayed(cell)
        if cell.schedule.watches and not settings.validation:
            raise ValueError(
                f"schedule '{cell.schedule}' watches the loss on validation samples: "
                "validation must be at least 1"
            )
