"""Evaluators, which measure a run between its rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cohort.core import lazy, randomness
from cohort.core.components import Catalog, Component
from cohort.core.metric import Metric
from cohort.needs import needs_of
from cohort.selection.selector import Screening
from cohort.settings import DEFAULTS, evaluated_rounds, plans_by_name
from cohort.training.procedures.procedure import ACCURACY, Federated

if TYPE_CHECKING:
    import torch

    from cohort.data.samples import Samples
    from cohort.training import contract, evaluation
    from cohort.training.cell import Cell
    from cohort.training.task import RunState, Task
    from cohort.training.updates import Updates, Weights

    Evaluated = tuple[Weights, Samples, torch.Tensor]  # a model, samples, and indices into these
else:
    contract = lazy("cohort.training.contract")
    evaluation = lazy("cohort.training.evaluation")
    torch = lazy("torch")


class Evaluator(Component):
    """Evaluates a run in the rounds of a plan and records the `metrics` that it declares."""

    setting: ClassVar[str] = "evaluators"
    """The setting with its plan of rounds: its own, or `evaluators`, which has plans by name."""
    on_holdout: ClassVar[bool] = False
    """Whether it evaluates on samples that clients hold out."""
    metrics: ClassVar[Mapping[str, Metric]] = {}
    """The metrics that it records, by recorded name."""

    def applies(self, task: Task) -> bool:
        """Whether the task has samples to evaluate on."""
        return not self.on_holdout or any(map(len, task.shards.holdouts))

    def check(self, cell: Cell) -> None:
        """Raise ValueError if this evaluator cannot evaluate a cell that asks for it."""
        if self.on_holdout and not cell.settings.holdout:
            raise ValueError(f"{self.setting} needs held-out samples: set holdout above 0")

    def plan(self, cell: Cell) -> int | str:
        """The rounds to evaluate, in the format of the setting `evaluate_every`; 0 for none."""
        plan: int | str = getattr(cell.settings, self.setting)
        return plans_by_name(str(plan)).get(self.name, 0) if self.setting == "evaluators" else plan

    def rounds(self, cell: Cell) -> tuple[int, ...]:
        """The rounds of a cell to evaluate, in order, always with the last; none without a plan."""
        return evaluated_rounds(self.plan(cell), cell.settings.rounds)

    def evaluate(
        self, task: Task, network: torch.nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        """Evaluate a round and return its metrics by name. `network` is the module for the state's
        weights; `updates` holds the local models of the cohort, None if the procedure has none."""
        raise NotImplementedError


def evaluation_metrics(split: str, title: str, samples: str) -> Mapping[str, Metric]:
    """Declarations of the metrics of an `Evaluation` on a split, by recorded name. Figures call the
    split `title`, and its samples `samples`."""
    error = Metric(f"Calibration error on {samples}", "%", 100, digits=2, better="low")
    return {
        f"{split}_accuracy": Metric(f"{title} accuracy", **ACCURACY),
        f"{split}_loss": Metric(f"{title} loss", better="low"),
        f"{split}_calibration_error": error,
        f"{split}_classes_named": Metric(f"Classes predicted on {samples}", digits=0, whole=True),
    }


def mean_metrics(name: str, accuracy: str, loss: str) -> Mapping[str, Metric]:
    """Declarations of `{name}_accuracy` and `{name}_loss`, which a round may lack; with titles."""
    return {
        f"{name}_accuracy": Metric(accuracy, **ACCURACY, partial=True),
        f"{name}_loss": Metric(loss, better="low", partial=True),
    }


class MeanOverModels(Evaluator):
    """Base of evaluators that record the mean accuracy and loss of several models: NaN if there are
    none to evaluate, nothing in a round without local models."""

    def models(self, task: Task, state: RunState, updates: Updates) -> list[Evaluated]:
        """The models with the samples on which to evaluate each."""
        raise NotImplementedError

    def evaluate(
        self, task: Task, network: torch.nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        if updates is None:
            return {}
        models = self.models(task, state, updates)
        results = [evaluation.evaluate(network, *model, plain=task.plain) for model in models]
        return {
            f"{self.name}_accuracy": np.mean([result.accuracy for result in results] or np.nan),
            f"{self.name}_loss": np.mean([result.loss for result in results] or np.nan),
        }


class TestEvaluator(Evaluator):
    """Evaluates the global model on the test samples that are not reserved for selectors."""

    name = "test"
    setting = "evaluate_every"
    metrics: ClassVar[Mapping[str, Metric]] = evaluation_metrics("test", "Test", "the test set")

    def evaluate(
        self, task: Task, network: torch.nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        samples, indices = getattr(task, f"{self.name}_samples"), getattr(task, self.name)
        result = evaluation.evaluate(network, state.weights, samples, indices, plain=task.plain)
        return result.metrics(self.name)


class ValidationEvaluator(TestEvaluator):
    """Evaluates the global model on validation samples, if there are any: as often as on the test
    samples, or in every round if the procedure needs it (for a schedule that follows the loss)."""

    name: ClassVar[str] = "validation"
    metrics = evaluation_metrics("validation", "Validation", "validation samples")

    def applies(self, task: Task) -> bool:
        return len(task.validation) > 0

    def plan(self, cell: Cell) -> int | str:
        return 1 if cell.procedure.validates_every_round else super().plan(cell)


class OwnSamplesEvaluator(MeanOverModels):
    """Evaluates the local model of each client of the cohort on the client's own training samples
    and records the mean over clients that hold any."""

    name = "own_samples"
    setting = "evaluate_own"
    metrics = mean_metrics("own_samples", "Accuracy on own samples", "Loss on own samples")

    def models(self, task: Task, state: RunState, updates: Updates) -> list[Evaluated]:
        models = []
        for row, client in enumerate(updates.clients):
            indices = torch.from_numpy(task.shards.indices[client]).to(task.test.device)
            if len(indices):
                models.append((updates.client_weights(row), task.train_samples, indices))
        return models


class CohortSamplesEvaluator(OwnSamplesEvaluator):
    """Evaluates the global model after the round on the training samples of each client of its
    cohort and records the mean over clients that hold any."""

    name = "cohort_samples"
    setting = "evaluators"
    metrics = mean_metrics(
        "cohort_samples", "Global accuracy on the cohort's samples", "Loss on the cohort's samples"
    )

    def models(self, task: Task, state: RunState, updates: Updates) -> list[Evaluated]:
        models = super().models(task, state, updates)
        return [(state.weights, samples, indices) for _, samples, indices in models]


class HoldoutEvaluator(Evaluator):
    """Evaluates the global model on held-out samples, and records the worst client's accuracy."""

    name = "holdout"
    setting = "evaluate_holdout"
    on_holdout = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        **evaluation_metrics("holdout", "Held-out", "held-out samples"),
        "holdout_worst_accuracy": Metric("Held-out accuracy of the worst client", **ACCURACY),
    }

    def evaluate(
        self, task: Task, network: torch.nn.Module, state: RunState, updates: Updates | None
    ) -> dict[str, Any]:
        device = task.test.device
        held_out = [torch.from_numpy(part).to(device) for part in task.shards.holdouts if len(part)]
        model = network, state.weights, task.train_samples
        of_all = evaluation.evaluate(*model, torch.cat(held_out), plain=task.plain)
        of_clients = [evaluation.evaluate(*model, part, plain=task.plain) for part in held_out]
        worst = min(result.accuracy for result in of_clients)
        return of_all.metrics("holdout") | {"holdout_worst_accuracy": worst}


class LocalModelsEvaluator(MeanOverModels):
    """Evaluates each local model of the cohort on the test samples and records the mean."""

    name = "local"
    setting = "evaluate_local"
    metrics = mean_metrics("local", "Local test accuracy", "Local test loss")

    def models(self, task: Task, state: RunState, updates: Updates) -> list[Evaluated]:
        models = map(updates.client_weights, range(len(updates.sizes)))
        return [(model, task.test_samples, task.test) for model in models]


class NextCohortEvaluator(MeanOverModels):
    """Evaluates the global model on the held-out samples of a cohort that the selector draws after
    the round, as Flower does if clients evaluate and its client manager selects. This draw neither
    is nor changes the cohort of the next round."""

    name = "next_cohort"
    setting = "evaluate_next"
    on_holdout = True
    metrics = mean_metrics("next_cohort", "Next-draw accuracy", "Next-draw loss")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        if cell.settings.availability != DEFAULTS["availability"]:
            raise ValueError(f"{self.setting} draws from all clients: leave out availability")
        if not isinstance(cell.procedure, Federated):
            raise ValueError(f"{self.setting} draws cohorts, but not for '{cell.procedure}'")
        asks = any(need.gathered == "before" for need in needs_of(cell.selector))
        if isinstance(cell.selector, Screening) or asks:
            raise ValueError(f"{self.setting} asks nobody, but '{cell.settings.strategy}' does")

    def models(self, task: Task, state: RunState, updates: Updates) -> list[Evaluated]:
        clients, view = np.arange(task.settings.clients), task.view(state.reports)
        rng = randomness.generator(task.settings.seed, "next cohort", round=state.round)
        cohort = contract.CheckedSelector(task.selector).select(state.selector, clients, view, rng)
        held_out = np.concatenate([task.shards.holdouts[client] for client in cohort.clients])
        indices = torch.from_numpy(held_out).to(task.test.device)
        return [(state.weights, task.train_samples, indices)]


_MEANS = CohortSamplesEvaluator, LocalModelsEvaluator, NextCohortEvaluator, OwnSamplesEvaluator
_CLASSES = *_MEANS, HoldoutEvaluator, TestEvaluator, ValidationEvaluator
EVALUATORS = Catalog("cohort.training.evaluators", Evaluator, _CLASSES)
