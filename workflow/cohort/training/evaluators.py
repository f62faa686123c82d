"""Evaluators, which measure a run between its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core.components import Catalog, Component
from cohort.core.lazy import lazy
from cohort.core.metric import Metric
from cohort.core.randomness import generator
from cohort.needs import needs_of
from cohort.selection.selector import Screening
from cohort.settings import evaluated_rounds, plans_by_name
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
    contract = lazy("cohort.training.contract")
    choosing = lazy("cohort.training.procedures.federated.choosing")
    evaluation = lazy("cohort.training.evaluation")
    torch = lazy("torch")


@dataclass(frozen=True, kw_only=True)
class Evaluator(Component):
    """Evaluates a run in the rounds of a plan and records the `metrics` that it declares."""

    setting: ClassVar[str] = "evaluators"
    """The setting with its plan of rounds: one of its own, or `evaluators`, which has the plan of
    each evaluator that it names."""

    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records, by recorded name."""

    def applies(self, task: Task) -> bool:
        """Whether the task has samples to evaluate on."""
        return True

    def check(self, cell: Cell) -> None:
        """Raise ValueError if this evaluator cannot evaluate a cell that asks for it."""

    def plan(self, cell: Cell) -> int | str:
        """The rounds to evaluate, in the format of the setting `evaluate_every`; 0 for none."""
        plan: int | str = getattr(cell.settings, self.setting)
        return plans_by_name(str(plan)).get(self.name, 0) if self.setting == "evaluators" else plan

    def is_due(self, task: Task, state: RunState) -> bool:
        """Whether to evaluate after the round of `state`: in the planned rounds, unless the run has
        diverged or there is nothing to evaluate on."""
        is_planned = state.round in self.rounds(task)
        return is_planned and not state.diverged and self.applies(task)

    def rounds(self, cell: Cell) -> tuple[int, ...]:
        """The rounds of a cell to evaluate, in order, always with the last; none without a plan."""
        return evaluated_rounds(self.plan(cell), cell.settings.rounds)

    def evaluate(
        self, task: Task, network: nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        """Evaluate a round and return its metrics by name. `network` is the module for the state's
        weights; `updates` holds the local models of the cohort, None if the procedure has none."""
        raise NotImplementedError


def evaluation_metrics(split: str, title: str, samples: str) -> Mapping[str, Metric]:
    """Declarations of the metrics of an `Evaluation` on a split, by recorded name. Figures call the
    split `title`, and its samples `samples`."""
    return {
        f"{split}_accuracy": Metric(f"{title} accuracy", "%", 100, digits=2, better="high"),
        f"{split}_loss": Metric(f"{title} loss", better="low"),
        f"{split}_calibration_error": Metric(
            f"Calibration error on {samples}", "%", 100, digits=2, better="low"
        ),
        f"{split}_classes_named": Metric(f"Classes named on {samples}", digits=0, whole=True),
    }


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


EVALUATORS = Catalog(
    "cohort.training.evaluators",
    Evaluator,
    (OnHoldout, OfLocalModels, OnNextCohort, OnOwnSamples, OnTest, OnValidation),
)
