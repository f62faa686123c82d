"""The context in which a run's needs measure: results of global and local models on samples, which
are computed and counted when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.training.contract.read_only import read_only
from cohort.training.evaluation import Evaluation, evaluate, mean_softmax, softmax_of
from cohort.training.ledger import Ledger
from cohort.training.task import Task
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.updates import Updates, Weights


@dataclass(frozen=True)
class ModelEvaluation:
    """The `ModelResults` of a model on the samples with these indices, computed by a client, or by
    the server (None)."""

    task: Task
    ledger: Ledger
    weights: Weights
    samples: Samples
    indices: Tensor
    client: int | None

    @property
    def loss(self) -> float:
        return self._evaluation.loss

    @property
    def accuracy(self) -> float:
        return self._evaluation.accuracy

    @cached_property
    def softmax(self) -> np.ndarray:
        return read_only(self._computed(softmax_of))

    @cached_property
    def mean_softmax(self) -> np.ndarray:
        return read_only(self._computed(mean_softmax))

    @property
    def labels(self) -> np.ndarray:
        return read_only(self.samples.labels[self.indices].cpu().numpy())

    @cached_property
    def inputs(self) -> Tensor:
        self.ledger.evaluated(len(self.indices), self.client)
        return self.samples.inputs(self.indices)

    @cached_property
    def _evaluation(self) -> Evaluation:
        self.ledger.evaluated(len(self.indices), self.client)
        return evaluate(*self._arguments, plain=self.task.plain)

    def _computed(self, compute: Callable[..., Tensor]) -> np.ndarray:
        self.ledger.evaluated(len(self.indices), self.client)
        return compute(*self._arguments, plain=self.task.plain).cpu().numpy()

    @property
    def _arguments(self) -> tuple[nn.Module, Weights, Samples, Tensor]:
        return self.task.model, self.weights, self.samples, self.indices


@dataclass(frozen=True)
class ModelEvaluations:
    """The `EvaluationContext` of a run: global model, local models and the samples for them."""

    task: Task
    clients: np.ndarray
    ledger: Ledger
    trainer: Trainer | None = None
    weights: Weights | None = None
    local_models: Updates | None = None
    works: Sequence[LocalWork] = ()
    seconds: np.ndarray | None = None
    round: int = 0

    @property
    def network(self) -> nn.Module:
        return self.task.model

    def label_counts(self) -> np.ndarray:
        rng = generator(self.task.settings.seed, "selection")
        return read_only(
            self.task.selector.label_report.reported_counts(self.task.shards.label_counts, rng)
        )

    def overlapping(self) -> np.ndarray:
        return self.task.shards.overlapping()[self.clients].astype(np.float64)

    def training_losses(self) -> np.ndarray:
        assert self.local_models is not None
        return self.local_models.losses.double().cpu().numpy()

    def global_on_own(self) -> Iterator[ModelEvaluation]:
        assert self.weights is not None
        for client in self.clients:
            yield self._on_samples(self.weights, self.task.shards.indices[client], client)

    def global_on_batch(self) -> Iterator[ModelEvaluation]:
        assert self.weights is not None
        settings = self.task.settings
        for client in self.clients:
            rng = generator(settings.seed, "evaluated batch", round=self.round, client=client)
            samples = rng.permutation(self.task.shards.indices[client])[: settings.batch]
            yield self._on_samples(self.weights, samples, client)

    def updates(self) -> dict[str, np.ndarray]:
        assert self.weights is not None and self.local_models is not None
        return {
            name: read_only((self.local_models.weights[name] - start).cpu().numpy())
            for name, start in self.task.trainable(self.weights).items()
        }

    def samples_per_round(self) -> np.ndarray:
        settings, sizes = self.task.settings, self.task.sizes[self.clients]
        steps = np.array([local_steps(size, settings)[0] for size in sizes])
        return np.minimum(sizes, steps * settings.batch)

    def durations(self) -> np.ndarray:
        return read_only(np.zeros(len(self.clients)) if self.seconds is None else self.seconds)

    def local_on_own(self) -> Iterator[ModelEvaluation]:
        assert self.local_models is not None
        for row, client in enumerate(self.clients):
            indices = self.task.shards.indices[client]
            yield self._on_samples(self.local_models.client_weights(row), indices, client)

    def local_on_last_batch(self) -> Iterator[ModelEvaluation]:
        assert self.local_models is not None
        for row, work in enumerate(self.works):
            batch = work.last_batch(self.task.settings)
            yield self._on_samples(self.local_models.client_weights(row), batch, work.client)

    def local_on_reserved(self) -> Sequence[ModelEvaluation]:
        return self._local_on_reserved

    def reserved_losses(self) -> np.ndarray:
        assert self.trainer is not None and self.local_models is not None
        self.ledger.evaluated(len(self.task.reserved) * len(self.clients), client=None)
        return self.trainer.losses(self.local_models, self.task.test_samples, self.task.reserved)

    @cached_property
    def _local_on_reserved(self) -> list[ModelEvaluation]:
        """The evaluations of the local models on reserved samples, cached so that needs which share
        them are charged for them once."""
        assert self.local_models is not None
        models = map(self.local_models.client_weights, range(len(self.clients)))
        samples, reserved = self.task.test_samples, self.task.reserved
        return [
            ModelEvaluation(self.task, self.ledger, model, samples, reserved, client=None)
            for model in models
        ]

    def _on_samples(self, weights: Weights, indices: np.ndarray, client: int) -> ModelEvaluation:
        """The results of a model on training samples of a client."""
        samples = self.task.train_samples
        on_device = torch.from_numpy(indices).to(samples.labels.device)
        return ModelEvaluation(self.task, self.ledger, weights, samples, on_device, int(client))
