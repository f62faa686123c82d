"""The serial trainer, the reference for all others: plain PyTorch, one client after another."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from cohort.records.history import PROFILE
from cohort.settings import Settings
from cohort.training import contract, ledger, objectives
from cohort.training.trainers.trainer import Trainer
from cohort.training.updates import LocalWork, Updates, Weights, Works, local_steps

Parameters = Iterable[nn.Parameter]


class PlainSGD:
    """`torch.optim.SGD` up to rounding, cheaper to create for each client and round: the first of
    PyTorch's own imports its compiler, which takes a second. It overwrites the gradients."""

    def __init__(self, parameters: Parameters, lr: float, momentum: float, decay: float):
        self.parameters: list[Tensor] = list(parameters)
        self.lr, self.momentum, self.weight_decay = lr, momentum, decay
        self.velocity: dict[Tensor, Tensor] = {}

    def zero_grad(self) -> None:
        """Set all gradients to None."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step on every parameter that has a gradient."""
        moved = [parameter for parameter in self.parameters if parameter.grad is not None]
        if not moved:
            return
        changes = [parameter.grad for parameter in moved if parameter.grad is not None]
        if self.weight_decay:
            torch._foreach_add_(changes, moved, alpha=self.weight_decay)
        for parameter, change in zip(moved, changes, strict=True) if self.momentum else ():
            if parameter in self.velocity:  # it may have had no gradient so far
                change.add_(self.velocity[parameter], alpha=self.momentum)
            self.velocity[parameter] = change
        torch._foreach_add_(moved, changes, alpha=-self.lr)


LocalOptimizer = PlainSGD | Optimizer
AfterStep = Callable[[Tensor, Tensor, Tensor], object] | None
"""A callback after each optimizer step, with the batch's loss, outputs and targets."""


class SerialTrainer(Trainer):
    """Trains one client after another, on one copy of the network, by plain PyTorch."""

    name: ClassVar[str] = "serial"

    def prepare(self) -> None:
        layers = self.model.modules()
        self.normalizations = [layer for layer in layers if isinstance(layer, _BatchNorm)]

    def empty_rows(self, count: int) -> Weights:
        self.state = self.model.state_dict()  # the network's own tensors, which each client trains
        return {name: value.new_empty(count, *value.shape) for name, value in self.state.items()}

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
        self, work: LocalWork, optimizer: LocalOptimizer, anchor: Sequence[Tensor], after: AfterStep
    ) -> Tensor:
        """Do one client's work, from the network's present weights; return the loss of each step.
        `anchor` are the weights to which the objective may pull, in the order of parameters."""
        indices, losses = torch.from_numpy(work.samples), []
        if not len(indices):
            return self.samples.std.new_empty(0)
        inputs, targets = self._inputs(indices, work), self.samples.labels[indices]
        statistics, bias = self._statistics(targets, self.model)
        torch.manual_seed(work.dropout_seed(self.settings))
        self.model.train()
        for step, batch in work.steps(self.settings):
            for layer in self.normalizations:  # PyTorch refuses one sample of one pixel
                layer.train(len(batch) > 1)
            optimizer.zero_grad()
            outputs, labels = self.model(inputs(step, batch)), _rows(targets, batch)
            loss = contract.losses_of(self.objective, outputs, labels, statistics, bias).mean()
            if self.objective.is_proximal:
                loss = loss + self.objective.proximal_term(self.model.parameters(), anchor)
            loss.backward()
            if self.settings.clip:
                clip_grad_norm_(self.model.parameters(), self.settings.clip)
            optimizer.step()
            losses.append(loss.detach())
            if after is not None:
                after(losses[-1], outputs, labels)
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _statistics(self, targets: Tensor, network: nn.Module) -> tuple[Tensor, Tensor]:
        """A client's label statistics, from its labels, and its network's output bias."""
        bias = objectives.output_bias(network)
        counts = targets.bincount(minlength=len(bias)).to(bias.dtype)
        return self.objective.label_statistics(counts), bias

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
            batch_numbers = _rows(numbers[step // per_epoch], batch)
            changed = self.augmentation.apply(_rows(images, batch), batch_numbers)
            return _match_layout(self.samples.standardized(changed))

        return augmented


class StepRecordingTrainer(SerialTrainer):
    """The serial trainer that also records each local step: its client, its number within J, loss
    and accuracy of its batch before the step, and the seconds that it took. It takes the same steps
    to the bit, and begins an interrupted round anew."""

    def train(self, works: Works, anchor: Weights, cursor: ledger.Cursor | None = None) -> Updates:
        self.profile: list[tuple[float, ...]] = []
        return super().train(works, anchor)

    def step_profile(self) -> np.ndarray:
        """What was recorded of each step of the last call of `train` (step, column)."""
        return np.array(self.profile, dtype=np.float64).reshape(-1, len(PROFILE) - 1)

    def run(
        self, work: LocalWork, optimizer: LocalOptimizer, anchor: Sequence[Tensor], after: AfterStep
    ) -> Tensor:
        taken, started = len(self.profile), 0.0

        def start(*_: object) -> None:
            nonlocal started
            started = time.perf_counter()

        def record(loss: Tensor, outputs: Tensor, targets: Tensor) -> None:
            if after is not None:
                after(loss, outputs, targets)
            hits = outputs.detach().argmax(dim=1) == targets
            of_batch = float(loss), float(hits.double().mean())  # waits for a GPU
            step = work.begin + len(self.profile) - taken
            self.profile.append((work.client, step, *of_batch, time.perf_counter() - started))

        with self.model.register_forward_pre_hook(start):
            return super().run(work, optimizer, anchor, record)


def _rows(tensor: Tensor, batch: np.ndarray) -> Tensor:
    """The rows of a batch; a single row is a view, not a copy."""
    if len(batch) == 1:
        return tensor[batch[0] : batch[0] + 1]
    rows = torch.from_numpy(batch).to(tensor.device)
    return tensor.index_select(0, rows) if tensor.is_contiguous() else tensor[rows]


def _match_layout(inputs: Tensor) -> Tensor:
    """Convert images to the memory layout of convolution weights, so that no step does."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs


def _correction_step(model: nn.Module, correction: Weights, lr: float) -> AfterStep:
    """A function that moves the weights along a correction; None if there is no correction."""
    if not correction:
        return None
    moves = [(parameter, lr * correction[name]) for name, parameter in model.named_parameters()]

    @torch.no_grad()
    def move(*_: Tensor) -> None:
        for parameter, change in moves:
            parameter.add_(change)

    return move


def local_optimizer(settings: Settings, parameters: Parameters, lr: float) -> LocalOptimizer:
    """Create an optimizer for one client's local work in one round."""
    if settings.optimizer == "sgd":
        return PlainSGD(parameters, lr, settings.momentum, settings.weight_decay)
    return torch_optimizer(settings, parameters, lr)


def torch_optimizer(settings: Settings, parameters: Parameters, lr: float) -> Optimizer:
    """Create a PyTorch optimizer, which works with learning rate schedulers."""
    if settings.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=lr, weight_decay=settings.weight_decay)
    return torch.optim.SGD(parameters, lr, settings.momentum, weight_decay=settings.weight_decay)


def optimizer_state(optimizer: Optimizer, model: nn.Module) -> Weights:
    """The state of a PyTorch optimizer as tensors named `{parameter}/{key}`."""
    names: dict[Tensor, str] = {parameter: name for name, parameter in model.named_parameters()}
    return {
        f"{names[parameter]}/{key}": torch.as_tensor(value).clone()
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
        if value is not None
    }


def load_optimizer_state(optimizer: Optimizer, model: nn.Module, state: Weights) -> None:
    """Restore the state that `optimizer_state` returned."""
    parameters = dict(model.named_parameters())
    for path, value in state.items():
        name, _, key = path.rpartition("/")
        optimizer.state[parameters[name]][key] = value.clone()
