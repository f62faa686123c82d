"""Gathers what a selector needs to be told, and enters what that costs into the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from cohort.core.randomness import generator
from cohort.needs import NEEDS, Need
from cohort.training.contract.mistakes import WrongAnswer
from cohort.training.contract.read_only import read_only
from cohort.training.evaluation import Evaluation, evaluate, mean_softmax, softmax_of
from cohort.training.ledger import Ledger
from cohort.training.task import Task
from cohort.training.trainers.base import Trainer
from cohort.training.updates import Updates, Weights


@dataclass(frozen=True)
class ModelEvaluations:
    """The `EvaluationContext` of a run: global model, local models and the samples for them."""

    task: Task
    clients: np.ndarray
    ledger: Ledger
    trainer: Trainer | None = None
    weights: Weights | None = None
    updates: Updates | None = None

    def label_counts(self) -> np.ndarray:
        rng = generator(self.task.settings.seed, "selection")
        return read_only(self.task.selector.label_report.of(self.task.shards.label_counts, rng))

    def overlapping(self) -> np.ndarray:
        return self.task.shards.overlapping()[self.clients].astype(np.float64)

    def global_losses(self) -> np.ndarray:
        assert self.weights is not None
        self.ledger.evaluated(int(self.task.sizes[self.clients].sum()))
        weights = self.weights
        return np.array([self._on_own(weights, own).loss for own in self._own_samples()])

    def reserved_losses(self) -> np.ndarray:
        assert self.trainer is not None and self.updates is not None
        self.ledger.evaluated(len(self.clients) * len(self.task.reserved))
        return self.trainer.losses(self.updates, self.task.test_samples, self.task.reserved)

    def reserved_predictions(self) -> np.ndarray:
        return read_only(self._reserved_predictions)

    def reserved_correct(self) -> np.ndarray:
        labels = self.task.test_samples.labels[self.task.reserved].cpu().numpy()
        return np.asarray(self._reserved_predictions.argmax(axis=2) == labels, dtype=np.float64)

    @cached_property
    def _reserved_predictions(self) -> np.ndarray:
        """Softmax outputs of all local models, evaluated (and counted) once for all needs."""
        assert self.updates is not None
        task, reserved = self.task, self.task.reserved
        self.ledger.evaluated(len(self.clients) * len(reserved))
        found = []
        for local in map(self.updates.of_client, range(len(self.clients))):
            outputs = softmax_of(task.model, local, task.test_samples, reserved, plain=task.plain)
            found.append(outputs.cpu().numpy())
        return np.stack(found) if found else np.empty((0, len(reserved), task.classes))

    def training_losses(self) -> np.ndarray:
        assert self.updates is not None
        return self.updates.losses.double().cpu().numpy()

    def local_accuracies(self) -> np.ndarray:
        assert self.updates is not None
        self.ledger.evaluated(int(self.updates.sizes.sum()))
        return np.array(
            [
                self._on_own(self.updates.of_client(row), own).accuracy
                for row, own in enumerate(self._own_samples())
            ]
        )

    def mean_soft_labels(self) -> np.ndarray:
        assert self.updates is not None
        self.ledger.evaluated(int(self.updates.sizes.sum()))
        task, found = self.task, []
        for row, own in enumerate(self._own_samples()):
            local = self.updates.of_client(row)
            mean = mean_softmax(task.model, local, task.train_samples, own, plain=task.plain)
            found.append(mean.cpu().numpy())
        return np.stack(found)

    def _on_own(self, weights: Weights, own: torch.Tensor) -> Evaluation:
        """A model's evaluation on a client's own training samples."""
        task = self.task
        return evaluate(task.model, weights, task.train_samples, own, plain=task.plain)

    def _own_samples(self) -> Iterable[torch.Tensor]:
        """The training samples of each client that is asked."""
        device = self.task.train_samples.labels.device
        for client in self.clients:
            yield torch.from_numpy(self.task.shards.indices[client]).to(device)


class Needs:
    """The needs of a selector on a task, by when they are gathered."""

    def __init__(self, names: Iterable[str], task: Task):
        self.task = task
        self.all: list[Need] = [NEEDS[name]() for name in sorted(names)]

    def gathered(self, when: str) -> list[Need]:
        """The needs that are gathered `once`, `before` choosing or `after` training."""
        return [need for need in self.all if need.gathered == when]

    def once(self) -> dict[str, np.ndarray]:
        """What all clients report before the first round."""
        everybody = read_only(np.arange(self.task.settings.clients))
        context = ModelEvaluations(self.task, everybody, Ledger())
        return {need.name: _answers(need, context) for need in self.gathered("once")}

    def charge_setup(self, ledger: Ledger) -> None:
        """Record what all clients uploaded before the first round."""
        self._charge(self.gathered("once"), self.task.settings.clients, ledger)

    def before_choosing(
        self, weights: Weights, pool: np.ndarray, ledger: Ledger
    ) -> dict[str, np.ndarray]:
        """What the clients of a pool report of the global model: a row for each client of the
        federation, NaN for those outside the pool."""
        asked = self.gathered("before")
        context = ModelEvaluations(self.task, read_only(pool), ledger, weights=weights)
        with ledger.timed("selecting"):
            found = {need.name: _answers(need, context) for need in asked}
        self._charge(asked, len(pool), ledger)
        clients = self.task.settings.clients
        return {name: scattered(values, pool, clients) for name, values in found.items()}

    def after_training(
        self, updates: Updates, trainer: Trainer, ledger: Ledger
    ) -> dict[str, np.ndarray]:
        """What is known of the clients that answered, one row each."""
        asked = self.gathered("after")
        clients = read_only(np.array(updates.clients, dtype=np.int64))
        context = ModelEvaluations(self.task, clients, ledger, trainer=trainer, updates=updates)
        with ledger.timed("selecting"):
            found = {need.name: _answers(need, context) for need in asked}
        self._charge(asked, len(clients), ledger)
        return found

    def _charge(self, needs: Iterable[Need], clients: int, ledger: Ledger) -> None:
        for need in needs:
            size = need.upload(self.task.classes)
            if size:
                ledger.sent(need.name, size, to="server", copies=clients)


def _answers(need: Need, context: ModelEvaluations) -> np.ndarray:
    """What a need measures: numbers, one row for each client that is asked."""
    found = np.asarray(need.measure(context))
    if found.shape[:1] != (len(context.clients),) or found.dtype.kind not in "fiub":
        raise WrongAnswer(
            f"need '{need.name}' returned an array of shape {found.shape} and type {found.dtype}, "
            f"not a row of numbers for each of {len(context.clients)} clients"
        )
    return found


def scattered(values: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Rows put at their places among `count` rows, NaN in all others."""
    rows = np.full((count, *values.shape[1:]), np.nan)
    rows[places] = values
    return rows
