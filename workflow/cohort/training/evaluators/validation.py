"""Evaluation of the global model on validation samples."""

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
    from cohort.training.cell import Cell
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    evaluation = lazy("cohort.training.evaluation")


@dataclass(frozen=True, kw_only=True)
class OnValidation(Evaluator):
    """Evaluates the global model on validation samples, if there are any: as often as on the test
    samples, or in every round if the procedure needs it (for a schedule that follows the loss)."""

    name: ClassVar[str] = "validation"
    setting: ClassVar[str] = "evaluate_every"
    metrics: ClassVar[Mapping[str, Metric]] = evaluation_metrics(
        "validation", "Validation", "validation samples"
    )

    def applies(self, task: Task) -> bool:
        return len(task.validation) > 0

    def plan(self, cell: Cell) -> int | str:
        return 1 if cell.procedure.validates_every_round else super().plan(cell)

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        evaluated = evaluation.evaluate(
            network,
            state.weights,
            task.validation_samples,
            task.validation,
            plain=task.plain,
        )
        return evaluated.metrics("validation")
