"""Evaluation of the cohort's local models on the test samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.training.evaluators.evaluator import Evaluator

if TYPE_CHECKING:
    from torch import nn

    from cohort.training import evaluation
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    evaluation = lazy("cohort.training.evaluation")


@dataclass(frozen=True, kw_only=True)
class OfLocalModels(Evaluator):
    """Evaluates the local model of each client of the cohort on the test samples and records the
    mean."""

    name: ClassVar[str] = "local"
    setting: ClassVar[str] = "evaluate_local"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "local_accuracy": Metric(
            "Local test accuracy", "%", 100, digits=2, better="high", partial=True
        ),
        "local_loss": Metric("Local test loss", better="low", partial=True),
    }

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        if updates is None:
            return {}
        by_client = [
            evaluation.evaluate(
                network, updates.client_weights(row), task.test_samples, task.test, plain=task.plain
            )
            for row in range(len(updates.sizes))
        ]
        return {
            "local_accuracy": np.mean([result.accuracy for result in by_client]),
            "local_loss": np.mean([result.loss for result in by_client]),
        }
