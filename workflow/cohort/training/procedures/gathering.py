"""Gathers what a selector needs to know of models, and enters what that costs in the ledger."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cohort.core.randomness import generator
from cohort.data.samples import Samples
from cohort.needs import NEEDS, Need
from cohort.training.contract import read_only, require
from cohort.training.evaluation import Evaluation, evaluate, softmax_of
from cohort.training.ledger import Ledger
from cohort.training.task import Task
from cohort.training.updates import LocalWork, Updates, Weights, local_steps

TINY = 1e-30  # the least probability whose logarithm is taken: that of 0 is infinite


class NeedGatherer:
    """Gathers the needs of a selector from the clients of a task, and charges what they send."""

    def __init__(self, names: Iterable[str], task: Task):
        self.task = task
        self.all: list[Need] = [NEEDS[name]() for name in sorted(names)]

    def gathered_at(self, when: str) -> list[Need]:
        """The needs that are gathered `once`, `before` choosing or `after` training."""
        return [need for need in self.all if need.gathered == when]

    def gather(
        self, when: str, clients: Sequence[int] | np.ndarray, ledger: Ledger, **fields: Any
    ) -> dict[str, np.ndarray]:
        """Measure the needs that are gathered then, by need: a row for each of the clients, who
        upload it. The `fields` are those of `RunContext`."""
        numbers = read_only(np.array(clients, dtype=np.int64))
        context = RunContext(self.task, numbers, ledger, **fields)
        answers, wanted = {}, f"numbers of {len(numbers)} clients"
        with ledger.timed("selecting"):
            for need in self.gathered_at(when):
                answer = np.asarray(need.measure(context))
                are_rows = answer.shape[:1] == numbers.shape and answer.dtype.kind in "fiub"
                require(are_rows, f"need '{need.name}'", answer, wanted)
                answers[need.name] = answer
        self.charge(when, len(numbers), ledger)
        return answers

    def charge(self, when: str, clients: int, ledger: Ledger) -> None:
        """Record what each of so many clients uploads for the needs that are gathered then."""
        for need in self.gathered_at(when):
            if size := need.upload(self.task.classes):
                ledger.add_traffic(need.name, size, to="server", copies=clients)


def scatter_rows(values: np.ndarray, positions: np.ndarray, count: int) -> np.ndarray:
    """Put rows at their positions among `count` rows, NaN in all others."""
    rows = np.full((count, *values.shape[1:]), np.nan)
    rows[positions] = values
    return rows


@dataclass(frozen=True)
class ModelEvaluation:
    """The `ModelResults` of a model on the samples with these indices, computed by a client, or by
    the server (None), and counted in the ledger when they are read."""

    task: Task
    ledger: Ledger
    weights: Weights
    samples: Samples
    indices: Tensor
    client: int | None

    @cached_property
    def _evaluation(self) -> Evaluation:
        return self._computed(evaluate)

    @property
    def loss(self) -> float:
        return self._evaluation.loss

    @property
    def accuracy(self) -> float:
        return self._evaluation.accuracy

    @property
    def rms_loss(self) -> float:
        likelihoods = self.softmax[np.arange(len(self.indices)), self.labels]
        squares = np.log(np.maximum(likelihoods, TINY)) ** 2
        return float(np.sqrt(squares.mean())) if len(squares) else np.nan

    @cached_property
    def softmax(self) -> np.ndarray:
        return read_only(self._computed(softmax_of).cpu().numpy())

    @cached_property
    def mean_softmax(self) -> np.ndarray:
        return read_only(self._computed(softmax_of).mean(dim=0).cpu().numpy())

    @property
    def labels(self) -> np.ndarray:
        return read_only(self.samples.labels[self.indices].cpu().numpy())

    @cached_property
    def inputs(self) -> Tensor:
        self.ledger.add_evaluation(len(self.indices), self.client)
        return self.samples.inputs(self.indices)

    def _computed(self, compute: Callable[..., Any]) -> Any:
        self.ledger.add_evaluation(len(self.indices), self.client)
        task, weights = self.task, self.weights
        return compute(task.model, weights, self.samples, self.indices, plain=task.plain)


@dataclass(frozen=True)
class RunContext:
    """The `EvaluationContext` of a run: global model, local models and the samples for them. Needs
    that measure no model are its methods of their names."""

    task: Task
    clients: np.ndarray
    ledger: Ledger
    weights: Weights = field(default_factory=dict)
    local_models: Updates | None = None
    works: Sequence[LocalWork] = ()
    seconds: np.ndarray | None = None
    transfers: np.ndarray | None = None
    round: int = 0

    @property
    def network(self) -> nn.Module:
        return self.task.model

    @property
    def _trained(self) -> Updates:
        assert self.local_models is not None
        return self.local_models

    def label_counts(self) -> np.ndarray:
        task, rng = self.task, generator(self.task.settings.seed, "selection")
        return read_only(task.selector.reported_counts(read_only(task.shards.label_counts), rng))

    def overlap(self) -> np.ndarray:
        return self.task.shards.overlapping()[self.clients].astype(np.float64)

    def training_loss(self) -> np.ndarray:
        return self._trained.losses.double().cpu().numpy()

    def global_on_own(self) -> Iterator[ModelEvaluation]:
        for client in self.clients:
            yield self._on_samples(self.weights, self.task.shards.indices[client], client)

    def global_on_batch(self) -> Iterator[ModelEvaluation]:
        settings = self.task.settings
        for client in self.clients:
            rng = generator(settings.seed, "evaluated batch", round=self.round, client=client)
            samples = rng.permutation(self.task.shards.indices[client])[: settings.batch]
            yield self._on_samples(self.weights, samples, client)

    def updates(self) -> dict[str, np.ndarray]:
        return {
            name: read_only((self._trained.weights[name] - start).cpu().numpy())
            for name, start in self.task.trainable(self.weights).items()
        }

    def samples_per_round(self) -> np.ndarray:
        settings, sizes = self.task.settings, self.task.sizes[self.clients]
        steps = np.array([local_steps(size, settings)[0] for size in sizes])
        return np.minimum(sizes, steps * settings.batch)

    def duration(self) -> np.ndarray:
        return read_only(np.zeros(len(self.clients)) if self.seconds is None else self.seconds)

    expected_duration = duration

    def transfer_time(self) -> np.ndarray:
        assert self.transfers is not None
        return read_only(self.transfers)

    def local_on_own(self) -> Iterator[ModelEvaluation]:
        for row, client in enumerate(self.clients):
            indices = self.task.shards.indices[client]
            yield self._on_samples(self._trained.client_weights(row), indices, client)

    def local_on_last_batch(self) -> Iterator[ModelEvaluation]:
        for row, work in enumerate(self.works):
            batches = [positions for _, positions in work.steps(self.task.settings)]
            batch = work.samples[batches[-1]] if batches else work.samples[:0]
            yield self._on_samples(self._trained.client_weights(row), batch, work.client)

    def local_on_reserved(self) -> Sequence[ModelEvaluation]:
        return self._local_on_reserved

    @cached_property
    def _local_on_reserved(self) -> list[ModelEvaluation]:
        """Local models on reserved samples, cached so that needs sharing them are charged once."""
        reserved = self.task.test_samples, self.task.reserved, None
        models = map(self._trained.client_weights, range(len(self.clients)))
        return [ModelEvaluation(self.task, self.ledger, model, *reserved) for model in models]

    def _on_samples(self, weights: Weights, indices: np.ndarray, client: int) -> ModelEvaluation:
        samples = self.task.train_samples
        on_device = torch.from_numpy(indices).to(samples.labels.device)
        return ModelEvaluation(self.task, self.ledger, weights, samples, on_device, int(client))
