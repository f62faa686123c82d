"""The norm of the global model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.metric import Metric
from cohort.training.evaluators import Evaluator

if TYPE_CHECKING:
    from torch import nn

    from cohort.training.task import RunState, Task
    from cohort.training.updates import Updates


@dataclass(frozen=True, kw_only=True)
class WeightNorm(Evaluator):
    """The root of the sum of all squared weights."""

    name: ClassVar[str] = "weight_norm"
    metrics: ClassVar[Mapping[str, Metric]] = {"weight_norm": Metric("Norm of the weights")}

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        squares = (float(tensor.double().square().sum()) for tensor in state.weights.values())
        return {"weight_norm": sum(squares) ** 0.5}
