"""FedTAN (Wang, Shi and Chang, 2023): FedAvg whose clients share the statistics of batch
normalization in the first local step of each round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.metric import Metric
from cohort.models import MODELS
from cohort.selection.selector import Probing
from cohort.training.procedures.federated import OVERLAP_METRICS
from cohort.training.procedures.procedure import Procedure

if TYPE_CHECKING:
    from cohort.training.cell import Cell


@dataclass(frozen=True, kw_only=True)
class FedTan(Procedure):
    """The clients of a cohort take their first step together, layer by layer: each normalizes by
    the plain averages of all clients' means and variances, and receives the averages of the
    gradients of these. All other steps are local. Then everything is averaged by size, the running
    statistics too.

    Together the first steps are one of SGD on the union of the clients' batches, with ordinary
    batch normalization, if all of these batches have one size, and all shards too. Otherwise rows
    of small batches weigh more in the statistics, and clients with large shards in the average.

    As in its authors' code, momentum begins anew after the first step.
    """

    name: ClassVar[str] = "fedtan"
    metrics: ClassVar[Mapping[str, Metric]] = OVERLAP_METRICS

    def check(self, cell: Cell) -> None:
        model, optimizer, rule = cell.settings.model, cell.settings.optimizer, cell.server.name
        if not MODELS[model].batch_norm:
            raise ValueError(
                f"shares the statistics of batch normalization, which the model '{model}' lacks"
            )
        if optimizer != "sgd":
            raise ValueError(f"trains clients by SGD, but optimizer is '{optimizer}'; leave it out")
        self.check_constant(cell)
        if rule != "average":
            raise ValueError(f"averages the clients' models, not by the server rule '{rule}'")
        if isinstance(cell.selector, Probing):
            raise ValueError(
                "has clients that take their first step together, "
                f"but the selector '{cell.selector.name}' probes them first"
            )
