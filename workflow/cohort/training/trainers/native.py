"""The native trainer: one client after another, by machine code generated for the network."""

import time
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cohort.native import network
from cohort.training.objectives import native_coefficients
from cohort.training.task import Task
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import LocalWork, Weights, local_steps

SECONDS = 0.3  # target duration of a native call; signals are only handled between calls


class NativeTrainer(Trainer):
    """Takes the serial trainer's steps, but for rounding, in a few calls of native code."""

    name: ClassVar[str] = "native"

    @classmethod
    def unsupported_reason(cls, task: Task) -> str:
        try:
            if task.settings.optimizer != "sgd":
                raise network.Unsupported(task.settings.optimizer)
            if native_coefficients(task.objective, torch.ones(task.classes)) is None:
                raise network.Unsupported(f"the objective {task.objective.name}")
            if not all(parameter.requires_grad for parameter in task.model.parameters()):
                raise network.Unsupported("frozen weights")
            network.supported_layers(task.model, task.train_samples)
        except network.Unsupported as reason:
            return str(reason)
        return ""

    def prepare(self) -> None:
        batch = min(self.settings.batch, max(map(len, self.shards)))
        self.network = network.NativeNetwork(self.model, self.samples, batch, self.augmentation)
        self.steps_at_once = 8  # as long as it is not known how long they take

    def empty_rows(self, count: int) -> Weights:
        self.rows = np.empty(0)  # so that the memory of the last round's can be used again
        self.rows = np.empty((count, self.network.size), self.network.dtype)  # (client, weight)
        return network.unflatten(self.rows, self.model)

    def train_client(self, work: LocalWork, anchor: Weights, stacked: Weights, row: int) -> Tensor:
        steps = list(work.steps(self.settings))
        losses = np.empty(0, self.network.dtype)
        if not steps:
            self.rows[row] = network.flatten(work.weights, self.model)
            return torch.from_numpy(losses)
        self._begin(work, anchor)
        draws = self.augmentation_draws(len(work.samples), work.client, work.round)
        while len(losses) < len(steps):
            taken = steps[len(losses) : len(losses) + self.steps_at_once]
            started = time.perf_counter()
            losses = np.concatenate([losses, self._train_steps(taken, work, draws)])
            seconds = time.perf_counter() - started
            self.steps_at_once = max(1, min(4 * len(taken), int(SECONDS * len(taken) / seconds)))
        self.rows[row] = self.network.weights()
        return torch.from_numpy(losses)

    def _begin(self, work: LocalWork, anchor: Weights) -> None:
        """Set the network to the beginning of a client's work."""
        labels = self.network.labels[work.samples]
        counts = np.bincount(labels, minlength=self.network.classes).astype(self.network.dtype)
        statistics = self.objective.label_statistics(torch.from_numpy(counts))
        coefficients = native_coefficients(self.objective, statistics)
        assert coefficients is not None
        sgd = {key: getattr(self.settings, key) for key in ("momentum", "weight_decay", "clip")}
        sgd |= {"lr": work.lr, "mu": coefficients.mu}
        scale, shift = coefficients.scale, coefficients.shift
        self.network.begin(work.weights, sgd, anchor, work.correction(), scale, shift)

    def _train_steps(
        self, steps: list[tuple[int, np.ndarray]], work: LocalWork, draws: np.ndarray
    ) -> np.ndarray:
        """Train on some steps and return the loss of each. `draws` (epoch, sample, number) are the
        random numbers that augment the client's samples."""
        counts = np.array([len(batch) for _, batch in steps])
        positions = np.concatenate([batch for _, batch in steps])  # in the client's samples
        samples = work.samples[positions]
        if not self.augmentation.numbers:
            return self.network.train(samples, counts)
        per_epoch = local_steps(len(work.samples), self.settings)[1]
        epochs = np.repeat([step // per_epoch for step, _ in steps], counts)
        numbers = draws[epochs, positions]  # (sample, number)
        if self.network.augment is not None:
            return self.network.train(samples, counts, draws=numbers)
        images = self.samples.scaled(torch.from_numpy(samples))
        changed = self.augmentation.apply(images, torch.from_numpy(numbers))
        return self.network.train(samples, counts, images=changed)
