"""Evaluation of the global model on the test samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.training.evaluators.evaluator import Evaluator, evaluation_metrics

if TYPE_CHECKING:
    from torch import nn

    from cohort.training import evaluation
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    evaluation = lazy("cohort.training.evaluation")


@dataclass(frozen=True, kw_only=True)
class OnTest(Evaluator):
    """Evaluates the global model on the test samples that are not reserved for selectors."""

    name: ClassVar[str] = "test"
    setting: ClassVar[str] = "evaluate_every"
    metrics: ClassVar[Mapping[str, Metric]] = evaluation_metrics("test", "Test", "the test set")

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        evaluated = evaluation.evaluate(
            network, state.weights, task.test_samples, task.test, plain=task.plain
        )
        return evaluated.metrics("test")
