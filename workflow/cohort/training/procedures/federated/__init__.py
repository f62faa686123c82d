"""Federated learning: choose a cohort, train it, merge its updates, and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cohort.core.components import build
from cohort.core.metric import Metric
from cohort.selection import SELECTORS
from cohort.selection.abilities import Probing
from cohort.training.procedures.federated.overlap import OVERLAP_METRICS
from cohort.training.procedures.procedure import Procedure
from cohort.training.servers import SERVERS


@dataclass(frozen=True, kw_only=True)
class Federated(Procedure):
    """The loop of the papers' algorithm boxes."""

    name: ClassVar[str] = "federated"
    metrics: ClassVar[Mapping[str, Metric]] = OVERLAP_METRICS
    trainers: ClassVar[tuple[str, ...]] = ("serial", "native", "batched")

    def check(self, settings: Mapping[str, Any]) -> None:
        if settings["schedule"] != "constant":
            raise ValueError(
                f"follows lr_decay, not the schedule '{settings['schedule']}', "
                "which is for centralized runs; leave it out"
            )
        server = build(SERVERS, settings["server"])
        if not server.assumes_sgd:
            return
        if settings["optimizer"] != "sgd":
            raise ValueError(
                f"with the server rule '{server.name}' assumes clients that take steps of SGD, "
                f"but optimizer is '{settings['optimizer']}'"
            )
        if isinstance(build(SELECTORS, settings["selector"]), Probing):
            raise ValueError(
                f"with the server rule '{server.name}' assumes clients that take all their steps "
                f"at once, but the selector '{settings['selector']['name']}' probes them first"
            )
