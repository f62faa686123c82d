"""Federated learning that notes the parity of its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.training.procedures.procedure import Federated

if TYPE_CHECKING:
    from cohort.training.task import Task

rounds = lazy("my.training.procedures.noted.rounds")  # which imports torch, planning does not


@dataclass(frozen=True, kw_only=True)
class Noted(Federated):
    """Records 1 in odd rounds."""

    name: ClassVar[str] = "noted"
    metrics: ClassVar[Mapping[str, Metric]] = {"parity": Metric("Parity of the round")}

    def rounds_of(self, task: Task) -> Any:
        return rounds.NotedRounds(self, task)
