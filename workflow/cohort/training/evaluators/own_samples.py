"""Evaluation of the cohort's local models on their own clients' training samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.training.evaluators.evaluator import Evaluator

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cohort.training import evaluation
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    torch = lazy("torch")
    evaluation = lazy("cohort.training.evaluation")


@dataclass(frozen=True, kw_only=True)
class OnOwnSamples(Evaluator):
    """Evaluates the local model of each client of the cohort on the client's own training samples
    and records the mean over clients that hold any."""

    name: ClassVar[str] = "own_samples"
    setting: ClassVar[str] = "evaluate_own"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "own_samples_accuracy": Metric(
            "Accuracy on own samples", "%", 100, digits=2, better="high", partial=True
        ),
        "own_samples_loss": Metric("Loss on own samples", better="low", partial=True),
    }

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        if updates is None:
            return {}
        by_client = []
        for row, client in enumerate(updates.clients):
            own = torch.from_numpy(task.shards.indices[client]).to(task.test.device)
            if len(own):
                local = updates.client_weights(row)
                by_client.append(
                    evaluation.evaluate(network, local, task.train_samples, own, plain=task.plain)
                )
        return {
            "own_samples_accuracy": np.mean([result.accuracy for result in by_client])
            if by_client
            else np.nan,
            "own_samples_loss": np.mean([result.loss for result in by_client])
            if by_client
            else np.nan,
        }
