"""The native trainer: one client after another, by machine code generated for the network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from cohort.training.contract.objective import augmented
from cohort.training.cursor import Resumable
from cohort.training.local_work import LocalWork, local_steps
from cohort.training.native.augment import Augment, as_arrays
from cohort.training.native.kernel import Augmented, Batches, Inputs, Kernel, Request, code_for
from cohort.training.native.networks import (
    flat,
    network_stages,
    raw_inputs,
    scaled_inputs,
    target_for,
)
from cohort.training.native.sgd import Options
from cohort.training.native.stages import Unsupported, sample_shape
from cohort.training.objectives.objective import Coefficients, coefficients_of
from cohort.training.trainers.base import Trained, Trainer, load_finished, pack_finished
from cohort.training.updates import Weights

if TYPE_CHECKING:
    from cohort.training.task import Task

SECONDS = 0.3  # about how long the code runs until a checkpoint is possible
FIRST = 8  # steps, as long as it is not known how long they take

Steps = list[tuple[int, np.ndarray]]


class NativeTrainer(Trainer):
    """The serial trainer's steps, but for rounding, a few calls of native code for each client."""

    name: ClassVar[str] = "native"

    @classmethod
    def refusal(cls, task: Task) -> str:
        try:
            if task.settings.optimizer != "sgd":
                raise Unsupported(task.settings.optimizer)
            if coefficients_of(task.objective, torch.ones(task.classes)) is None:
                raise Unsupported(f"the objective {task.objective.name}")
            network_stages(task.model, task.train_samples)
        except Unsupported as reason:
            return str(reason)
        return ""

    def prepare(self) -> None:
        self.stages = network_stages(self.model, self.samples)
        self.target = target_for(self.model)
        self.labels = self.samples.labels.numpy()
        self.shape = sample_shape(self.samples.values.shape[1:])
        self.augment = None
        self.inputs = raw_inputs(self.samples, self.target.dtype)
        if self.augmentation.numbers:
            self.augment = Augment.of(self.augmentation, self.shape, self.target.lanes)
            self.inputs = scaled_inputs(self.samples, None, self.target.dtype)
        self.kernels: dict[Options, Kernel] = {}
        self.steps_at_once = FIRST

    def _train(self, works: Sequence[LocalWork], anchor: Weights, resumable: Resumable) -> Trained:
        rows = np.empty((len(works), self.stages[-1].end), self.target.dtype)
        stacked = self._named(rows)
        losses, steps = load_finished(resumable, stacked)
        for row, work in enumerate(works[len(steps) :], start=len(steps)):
            own = self._run(work, anchor, rows[row], resumable)
            losses.append(torch.from_numpy(own).mean())
            steps.append(len(own))
            resumable.set_finished(lambda: pack_finished(stacked, losses, steps))
        return Trained(stacked, torch.stack(losses), steps)

    def _run(
        self, work: LocalWork, anchor: Weights, trained: np.ndarray, resumable: Resumable
    ) -> np.ndarray:
        """Do one client's work: the loss of each step. The weights go to `trained`."""
        planned = list(work.steps(self.settings))
        losses = np.empty(0, self.target.dtype)
        if not planned:
            trained[:] = flat(work.weights, self.model)
            return losses
        coefficients = self._coefficients(work)
        kernel = self._kernel(work, anchor, coefficients)
        if current := resumable.take_current():
            losses = current["losses"].numpy()
            for name in ("weights", "velocity"):
                kernel.fill(name, current[name].numpy())
        rates = {name: float(getattr(self.settings, name)) for name in ("momentum", "weight_decay")}
        rates |= {"lr": work.lr, "mu": coefficients.mu, "clip": float(self.settings.clip or 0)}
        assert self.samples.scale is not None
        rates["factor"], plan = 1 / self.samples.scale, self._plan(work)
        while len(losses) < len(planned):
            some = planned[len(losses) : len(losses) + self.steps_at_once]
            started = time.perf_counter()
            found = self._take(kernel, some, work, rates, plan)
            self.steps_at_once = _more(len(some), time.perf_counter() - started)
            losses = np.concatenate([losses, found])
            resumable.reached(lambda: _current(kernel, losses))  # noqa: B023
        trained[:] = kernel.view("weights")
        return losses

    def _take(
        self,
        kernel: Kernel,
        steps: Steps,
        work: LocalWork,
        rates: dict[str, float],
        plan: tuple[np.ndarray, np.ndarray] | None,
    ) -> np.ndarray:
        """Take some steps: the loss of each."""
        counts = np.array([len(batch) for _, batch in steps])
        places = np.concatenate([batch for _, batch in steps])
        samples = work.samples[places]
        inputs, indices, augmented = self.inputs, samples, None
        if self.augmentation.numbers:
            per_epoch = local_steps(len(work.samples), self.settings)[1]
            epochs = np.repeat([step // per_epoch for step, _ in steps], counts)
            rows = epochs * len(work.samples) + places
            if plan is not None:
                augmented = Augmented(rows, *plan)
            else:
                inputs, indices = self._augmented(samples, rows, work), np.arange(len(samples))
        batches = Batches(indices, counts, kernel.code.program.width)
        return kernel.train(inputs, self.labels[samples], batches, rates, augmented)

    def _plan(self, work: LocalWork) -> tuple[np.ndarray, np.ndarray] | None:
        """How native code augments each sample in each epoch, if it can."""
        if self.augment is None:
            return None
        changes = self.augmentation.changes(self._draws(work))
        assert changes is not None
        return as_arrays(changes, self.target.dtype)

    def _draws(self, work: LocalWork) -> np.ndarray:
        """The random numbers of each sample in each epoch, one row each."""
        draws = self.augmentation_draws(len(work.samples), work.client, work.round)
        return draws.reshape(-1, self.augmentation.numbers)

    def _augmented(self, samples: np.ndarray, rows: np.ndarray, work: LocalWork) -> Inputs:
        """Samples augmented by PyTorch, in this order."""
        numbers = torch.from_numpy(self._draws(work)[rows])
        images = self.samples.scaled(torch.from_numpy(samples))
        applied = augmented(self.augmentation, images, numbers)
        return scaled_inputs(self.samples, applied, self.target.dtype)

    def _coefficients(self, work: LocalWork) -> Coefficients:
        classes = self.stages[-1].outer
        counts = np.bincount(self.labels[work.samples], minlength=classes)
        given = torch.from_numpy(counts.astype(self.target.dtype))
        found = coefficients_of(self.objective, self.objective.facts(given))
        assert found is not None
        return found

    def _kernel(self, work: LocalWork, anchor: Weights, coefficients: Coefficients) -> Kernel:
        """The kernel for a client's work, at its beginning."""
        correction, (scale, shift, mu) = work.correction(), coefficients
        options = Options(
            momentum=self.settings.momentum != 0,
            weight_decay=self.settings.weight_decay != 0,
            proximal=mu != 0,
            pulls_hard=work.lr * mu > 0.5,
            clips=bool(self.settings.clip),
            corrects=bool(correction),
            calibrates=scale is not None or shift is not None,
        )
        if options not in self.kernels:
            is_ready = self.augmentation.numbers and self.augment is None  # floats from PyTorch
            kind = "" if is_ready else self.inputs.kind
            given = self.stages, self.shape, self.settings.batch, self.target
            self.kernels[options] = Kernel(code_for(Request(*given, kind, options, self.augment)))
        kernel = self.kernels[options]
        kernel.fill("weights", flat(work.weights, self.model))
        if options.momentum:
            kernel.arrays["velocity"].fill(0)
        if options.proximal:
            kernel.fill("anchor", flat(anchor, self.model))
        if correction:
            kernel.fill("correction", flat(correction, self.model))
        kernel.calibrate(*(None if part is None else part.numpy() for part in (scale, shift)))
        return kernel

    def _named(self, rows: np.ndarray) -> Weights:
        """Views of stacked flat weights, by the parameters' names."""
        tensor, start, named = torch.from_numpy(rows), 0, {}
        for name, parameter in self.model.named_parameters():
            end = start + parameter.numel()
            named[name] = tensor[:, start:end].view(-1, *parameter.shape)
            start = end
        return named


def _more(steps: int, seconds: float) -> int:
    """How many steps to take at once, if so many took so long."""
    return max(1, min(4 * steps, int(SECONDS * steps / seconds)))


def _current(kernel: Kernel, losses: np.ndarray) -> Weights:
    """The state within a client's work, as a checkpoint holds it."""
    names = "weights", "velocity"
    found = {name: torch.from_numpy(kernel.view(name).copy()) for name in names}
    return found | {"losses": torch.from_numpy(losses)}
