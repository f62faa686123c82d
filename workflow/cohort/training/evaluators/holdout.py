"""Evaluation of the global model on samples that clients hold out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.training.evaluators.evaluator import Evaluator, evaluation_metrics

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cohort.training import evaluation
    from cohort.training.cell import Cell
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    torch = lazy("torch")
    evaluation = lazy("cohort.training.evaluation")


@dataclass(frozen=True, kw_only=True)
class OnHoldout(Evaluator):
    """Evaluates the global model on the held-out samples of all clients together, and records the
    accuracy of the worst client."""

    name: ClassVar[str] = "holdout"
    setting: ClassVar[str] = "evaluate_holdout"
    metrics: ClassVar[Mapping[str, Metric]] = {
        **evaluation_metrics("holdout", "Held-out", "held-out samples"),
        "holdout_worst_accuracy": Metric(
            "Held-out accuracy of the worst client", "%", 100, digits=2, better="high"
        ),
    }

    def applies(self, task: Task) -> bool:
        return any(len(part) for part in task.shards.holdouts)

    def check(self, cell: Cell) -> None:
        if not cell.settings.holdout:
            raise ValueError(
                f"{self.setting} needs samples that clients hold out: set holdout above 0"
            )

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        device = task.test.device
        parts = [torch.from_numpy(part).to(device) for part in task.shards.holdouts if len(part)]
        samples, weights = task.train_samples, state.weights
        by_client = [
            evaluation.evaluate(network, weights, samples, part, plain=task.plain) for part in parts
        ]
        together = evaluation.evaluate(
            network, weights, samples, torch.cat(parts), plain=task.plain
        )
        return together.metrics("holdout") | {
            "holdout_worst_accuracy": min(result.accuracy for result in by_client)
        }
