"""Evaluation of the global model on held-out samples of clients that the strategy draws next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.core.randomness import generator
from cohort.needs import needs_of
from cohort.selection.abilities import Screening
from cohort.training.evaluators.holdout import OnHoldout
from cohort.training.procedures.federated import Federated

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cohort.training import contract, evaluation
    from cohort.training.cell import Cell
    from cohort.training.procedures.federated import choosing
    from cohort.training.state import RunState
    from cohort.training.task import Task
    from cohort.training.updates import Updates
else:
    torch = lazy("torch")
    evaluation = lazy("cohort.training.evaluation")
    choosing = lazy("cohort.training.procedures.federated.choosing")
    contract = lazy("cohort.training.contract")


@dataclass(frozen=True, kw_only=True)
class OnNextCohort(OnHoldout):
    """Evaluates the global model on the held-out samples of a cohort that the selector draws after
    the round, as Flower does where selection is part of the client manager: `configure_evaluate`
    samples clients through it as `configure_fit` does.

    This draw is independent: it neither is nor changes the cohort of the next round.
    """

    name: ClassVar[str] = "next_cohort"
    setting: ClassVar[str] = "evaluate_next"
    metrics: ClassVar[Mapping[str, Metric]] = {
        "next_cohort_accuracy": Metric(
            "Held-out accuracy of the next draw", "%", 100, digits=2, better="high", partial=True
        ),
        "next_cohort_loss": Metric("Held-out loss of the next draw", better="low", partial=True),
    }

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if not isinstance(cell.procedure, Federated):
            raise ValueError(
                f"{self.setting} needs a draw after each round, which procedure "
                f"'{cell.procedure}' does not have; leave it out"
            )
        asks = any(need.gathered == "before" for need in needs_of(cell.selector))
        if isinstance(cell.selector, Screening) or asks:
            raise ValueError(
                f"{self.setting} draws a cohort without asking any client, but strategy "
                f"'{cell.settings.strategy}' screens, probes or asks clients before it chooses; "
                "leave it out"
            )

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        clients = np.arange(task.settings.clients)
        view = choosing.view_of(task, state.reports)
        rng = generator(task.settings.seed, "next cohort", round=state.round)
        cohort = contract.CheckedSelector(task.selector).select(state.selector, clients, view, rng)
        held_out = np.concatenate([task.shards.holdouts[client] for client in cohort])
        indices = torch.from_numpy(held_out).to(task.test.device)
        evaluated = evaluation.evaluate(
            network, state.weights, task.train_samples, indices, plain=task.plain
        )
        return {"next_cohort_accuracy": evaluated.accuracy, "next_cohort_loss": evaluated.loss}
