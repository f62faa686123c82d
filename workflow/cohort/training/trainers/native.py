"""The native trainer: one client after another, by machine code generated for the network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from cohort.native.network import (
    NativeNetwork,
    Sgd,
    Unsupported,
    check_supported,
    flatten,
    unflatten,
)
from cohort.training.contract.checked_objective import augmented
from cohort.training.cursor import ResumableCall
from cohort.training.objectives import Coefficients, native_coefficients
from cohort.training.trainers.base import Trained, Trainer, load_finished, pack_finished
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.updates import Weights

if TYPE_CHECKING:
    from cohort.training.task import Task

SECONDS = 0.3  # about how long the code runs until a checkpoint is possible
FIRST = 8  # steps, as long as it is not known how long they take

Steps = list[tuple[int, np.ndarray]]


class NativeTrainer(Trainer):
    """Takes the serial trainer's steps, but for rounding, in a few calls of native code."""

    name: ClassVar[str] = "native"

    @classmethod
    def refusal(cls, task: Task) -> str:
        try:
            if task.settings.optimizer != "sgd":
                raise Unsupported(task.settings.optimizer)
            if native_coefficients(task.objective, torch.ones(task.classes)) is None:
                raise Unsupported(f"the objective {task.objective.name}")
            check_supported(task.model, task.train_samples)
        except Unsupported as reason:
            return str(reason)
        return ""

    def prepare(self) -> None:
        settings = self.settings
        self.network = NativeNetwork(self.model, self.samples, settings.batch, self.augmentation)
        self.steps_at_once = FIRST

    def _train(
        self, works: Sequence[LocalWork], anchor: Weights, resumable: ResumableCall
    ) -> Trained:
        rows = np.empty((len(works), self.network.size), self.network.dtype)  # (client, weight)
        stacked = unflatten(rows, self.model)
        losses, steps = load_finished(resumable, stacked)
        for row, work in enumerate(works[len(steps) :], start=len(steps)):
            own = self._run(work, anchor, rows[row], resumable)
            losses.append(torch.from_numpy(own).mean())
            steps.append(len(own))
            resumable.set_finished(lambda: pack_finished(stacked, losses, steps))
        return Trained(stacked, torch.stack(losses), steps)

    def _run(
        self, work: LocalWork, anchor: Weights, trained: np.ndarray, resumable: ResumableCall
    ) -> np.ndarray:
        """Do one client's work: return each step's loss, and write the weights to `trained`."""
        planned = list(work.steps(self.settings))
        losses = np.empty(0, self.network.dtype)
        if not planned:
            trained[:] = flatten(work.weights, self.model)
            return losses
        self._begin(work, anchor)
        if current := resumable.take_current():
            losses = current["losses"].numpy()
            self.network.restore(current)
        draws = self.augmentation_draws(len(work.samples), work.client, work.round)
        while len(losses) < len(planned):
            steps = planned[len(losses) : len(losses) + self.steps_at_once]
            started = time.perf_counter()
            losses = np.concatenate([losses, self._train_steps(steps, work, draws)])
            self.steps_at_once = _next_step_count(len(steps), time.perf_counter() - started)
            resumable.save_if_due(lambda: self._current_state(losses))  # noqa: B023
        trained[:] = self.network.weights()
        return losses

    def _begin(self, work: LocalWork, anchor: Weights) -> None:
        """Set the network to the beginning of a client's work."""
        settings, (scale, shift, mu) = self.settings, self._coefficients(work)
        sgd = Sgd(
            lr=work.lr,
            momentum=float(settings.momentum),
            weight_decay=float(settings.weight_decay),
            clip=float(settings.clip),
            mu=mu,
        )
        self.network.begin(
            work.weights,
            sgd,
            anchor=anchor,
            correction=work.correction(),
            logit_scale=scale,
            logit_shift=shift,
        )

    def _train_steps(self, steps: Steps, work: LocalWork, draws: np.ndarray) -> np.ndarray:
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
        if self.network.augments:
            return self.network.train(samples, counts, draws=numbers)
        images = self.samples.scaled(torch.from_numpy(samples))
        changed = augmented(self.augmentation, images, torch.from_numpy(numbers))
        return self.network.train(samples, counts, images=changed)

    def _coefficients(self, work: LocalWork) -> Coefficients:
        labels = self.network.labels[work.samples]
        counts = np.bincount(labels, minlength=self.network.classes)
        statistics = self.objective.label_statistics(
            torch.from_numpy(counts.astype(self.network.dtype))
        )
        coefficients = native_coefficients(self.objective, statistics)
        assert coefficients is not None
        return coefficients

    def _current_state(self, losses: np.ndarray) -> Weights:
        """The state within a client's work, as a checkpoint holds it."""
        return self.network.state() | {"losses": torch.from_numpy(losses)}


def _next_step_count(steps: int, seconds: float) -> int:
    """The number of steps to take at once next, after so many took so long."""
    return max(1, min(4 * steps, int(SECONDS * steps / seconds)))
