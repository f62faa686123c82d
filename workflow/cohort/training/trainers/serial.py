"""The serial trainer: plain PyTorch, one client after another. The reference for all others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_

from cohort.core.randomness import torch_seed
from cohort.records.history import PROFILE
from cohort.training.contract import losses_of
from cohort.training.cursor import Cursor
from cohort.training.objectives.objective import output_bias
from cohort.training.trainers.base import Trainer
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.trainers.optimizers import LocalOptimizer, local_optimizer
from cohort.training.updates import Updates, Weights

AfterStep = Callable[[], object]


class SerialTrainer(Trainer):
    """Trains one client after another, on one copy of the network, by plain PyTorch."""

    name: ClassVar[str] = "serial"

    def prepare(self) -> None:
        self.normalizations = [
            layer for layer in self.model.modules() if isinstance(layer, _BatchNorm)
        ]

    def empty_rows(self, count: int) -> Weights:
        self.state = self.model.state_dict()  # the network's own tensors, which each client trains
        return {name: own.new_empty(count, *own.shape) for name, own in self.state.items()}

    def train_client(self, work: LocalWork, anchor: Weights, stacked: Weights, row: int) -> Tensor:
        self.model.load_state_dict(work.weights)
        optimizer = local_optimizer(self.settings, self.model.parameters(), work.lr)
        pull_to = [anchor[name] for name, _ in self.model.named_parameters()]
        correct = _correction_step(self.model, work.correction(), work.lr)
        losses = self.run(work, optimizer, pull_to, correct)
        for name, rows in stacked.items():
            rows[row].copy_(self.state[name])
        return losses

    def run(
        self,
        work: LocalWork,
        optimizer: LocalOptimizer,
        anchor: Sequence[Tensor],
        after_step: AfterStep | None = None,
    ) -> Tensor:
        """Do one client's work, from the network's present weights; return the loss of each step.

        `anchor` are the weights to which the objective may pull, in the order of the parameters.
        `after_step` is called after each step of the optimizer.
        """
        indices, losses = torch.from_numpy(work.samples), []
        if not len(indices):
            return self.samples.std.new_empty(0)
        inputs, targets = self._inputs(indices, work), self.samples.labels[indices]
        statistics, bias = self._statistics(targets, self.model)
        torch.manual_seed(
            torch_seed(self.settings.seed, "dropout", round=work.round, client=work.client)
        )
        self.model.train()
        for step, batch in work.steps(self.settings):
            for layer in self.normalizations:  # PyTorch refuses batch statistics of one sample
                layer.train(len(batch) > 1)
            optimizer.zero_grad()
            given = inputs(step, batch), _rows(targets, batch)
            loss, _ = self._backward(*given, statistics, bias, anchor)
            if self.settings.clip:
                clip_grad_norm_(self.model.parameters(), self.settings.clip)
            optimizer.step()
            if after_step is not None:
                after_step()
            losses.append(loss)
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _statistics(self, targets: Tensor, network: nn.Module) -> tuple[Tensor, Tensor]:
        """The label statistics of a client with these labels, and the bias of its network's output
        layer."""
        bias = output_bias(network)
        counts = targets.bincount(minlength=len(bias)).to(bias.dtype)
        return self.objective.label_statistics(counts), bias

    def _backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        statistics: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Leave the gradients of a batch's loss in the parameters; return loss and outputs."""
        outputs = self.model(inputs)
        loss = losses_of(self.objective, outputs, targets, statistics, bias).mean()
        if self.objective.is_proximal:
            loss = loss + self.objective.proximal_term(self.model.parameters(), anchor)
        loss.backward()
        return loss.detach(), outputs

    def _inputs(self, indices: Tensor, work: LocalWork) -> Callable[[int, np.ndarray], Tensor]:
        """A function from a step and its batch to the network's inputs. A shard that is seen whole
        and not augmented is standardized once."""
        steps, per_epoch = local_steps(len(indices), self.settings)
        if not self.augmentation.numbers and steps < per_epoch:
            return lambda step, batch: _match_layout(self.samples.inputs(_rows(indices, batch)))
        if not self.augmentation.numbers:
            inputs = _match_layout(self.samples.inputs(indices))
            return lambda step, batch: _rows(inputs, batch)
        images = self.samples.scaled(indices)
        draws = self.augmentation_draws(len(indices), work.client, work.round)
        numbers = torch.from_numpy(draws).to(images.device)

        def augmented(step: int, batch: np.ndarray) -> Tensor:
            drawn = _rows(numbers[step // per_epoch], batch)
            changed = self.augmentation.apply(_rows(images, batch), drawn)
            return _match_layout(self.samples.standardized(changed))

        return augmented


class StepRecordingTrainer(SerialTrainer):
    """The serial trainer that also records each local step: its client, its number within J, loss
    and accuracy of its batch before the step, and the seconds that it took.

    It takes the same steps to the bit, and begins an interrupted round anew.
    """

    def train(
        self, works: Sequence[LocalWork], anchor: Weights, cursor: Cursor | None = None
    ) -> Updates:
        self.profile: list[tuple[float, ...]] = []
        return super().train(works, anchor)

    def step_profile(self) -> list[np.ndarray]:
        return [np.array(self.profile, dtype=np.float64).reshape(-1, len(PROFILE) - 1)]

    def run(
        self,
        work: LocalWork,
        optimizer: LocalOptimizer,
        anchor: Sequence[Tensor],
        after_step: AfterStep | None = None,
    ) -> Tensor:
        taken = len(self.profile)

        def record() -> None:
            if after_step is not None:
                after_step()
            loss, accuracy = map(float, self._of_batch)  # waits for a GPU
            seconds = time.perf_counter() - self._started
            step = work.begin + len(self.profile) - taken
            self.profile.append((work.client, step, loss, accuracy, seconds))

        return super().run(work, optimizer, anchor, record)

    def _backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        statistics: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        self._started = time.perf_counter()
        loss, outputs = super()._backward(inputs, targets, statistics, bias, anchor)
        self._of_batch = loss, (outputs.detach().argmax(dim=1) == targets).double().mean()
        return loss, outputs


def _rows(tensor: Tensor, batch: np.ndarray) -> Tensor:
    """The rows of a batch; a single row is a view, not a copy."""
    if len(batch) == 1:
        return tensor[batch[0] : batch[0] + 1]
    rows = torch.from_numpy(batch).to(tensor.device)
    return tensor.index_select(0, rows) if tensor.is_contiguous() else tensor[rows]


def _match_layout(inputs: Tensor) -> Tensor:
    """Convert images to the memory layout of convolution weights, so that no step does."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs


def _correction_step(model: nn.Module, correction: Weights, lr: float) -> AfterStep | None:
    """A function that moves the weights along a correction; None if there is no correction."""
    if not correction:
        return None
    moves = [(parameter, lr * correction[name]) for name, parameter in model.named_parameters()]

    @torch.no_grad()
    def move() -> None:
        for parameter, change in moves:
            parameter.add_(change)

    return move
