"""The serial trainer: plain PyTorch, one client after another. The reference for all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_

from cohort.core.randomness import torch_seed
from cohort.training.contract.checked_objective import augmented, losses_of
from cohort.training.cursor import Collect, ResumableCall, strip_prefix
from cohort.training.objectives import output_bias
from cohort.training.trainers.base import Trained, Trainer, load_finished, pack_finished
from cohort.training.trainers.local_work import LocalWork, local_steps
from cohort.training.trainers.optimizers import (
    LocalOptimizer,
    load_optimizer_state,
    local_optimizer,
    optimizer_state,
)
from cohort.training.updates import Weights

AfterStep = Callable[[], object]


class SerialTrainer(Trainer):
    """Trains one client after another, on one copy of the network, by plain PyTorch."""

    name: ClassVar[str] = "serial"

    def prepare(self) -> None:
        self.normalizations = [
            layer for layer in self.model.modules() if isinstance(layer, _BatchNorm)
        ]

    def _train(
        self, works: Sequence[LocalWork], anchor: Weights, resumable: ResumableCall
    ) -> Trained:
        state = self.model.state_dict()  # the network's own tensors, which each client trains
        stacked = {
            name: tensor.new_empty(len(works), *tensor.shape) for name, tensor in state.items()
        }
        pull_to = [anchor[name] for name, _ in self.model.named_parameters()]
        losses, steps = self._load_finished(resumable, stacked)
        for row, work in enumerate(works[len(steps) :], start=len(steps)):
            self.model.load_state_dict(work.weights)
            optimizer = local_optimizer(self.settings, self.model.parameters(), work.lr)
            correct = _correction_step(self.model, work.correction(), work.lr)
            own = self.run(work, optimizer, pull_to, correct, resumable)
            for name, rows in stacked.items():
                rows[row].copy_(state[name])
            losses.append(own.mean())
            steps.append(len(own))
            resumable.set_finished(self._finished_collector(stacked, losses, steps))
        return Trained(stacked, torch.stack(losses), steps)

    def run(
        self,
        work: LocalWork,
        optimizer: LocalOptimizer,
        anchor: Sequence[Tensor],
        after_step: AfterStep | None,
        resumable: ResumableCall,
    ) -> Tensor:
        """Do one client's work, from the network's present weights; return the loss of each step.

        `anchor` are the weights to which the objective may pull, in the order of the parameters.
        `after_step` is called after each step of the optimizer. If the work was interrupted,
        network and optimizer continue from where they stood.
        """
        indices = torch.from_numpy(work.samples)
        if not len(indices):
            return self.samples.std.new_empty(0)
        inputs, targets = self._inputs(indices, work), self.samples.labels[indices]
        statistics, bias = self._statistics(targets, self.model)
        torch.manual_seed(
            torch_seed(self.settings.seed, "dropout", round=work.round, client=work.client)
        )
        self.model.train()
        losses = self._resume_client(resumable, optimizer)
        done = len(losses)
        for taken, (step, batch) in enumerate(work.steps(self.settings)):
            if taken < done:
                continue
            for layer in self.normalizations:  # PyTorch refuses batch statistics of one sample
                layer.train(len(batch) > 1)
            optimizer.zero_grad()
            loss = self._backward(
                inputs(step, batch), _rows(targets, batch), statistics, bias, anchor
            )
            if self.settings.clip:
                clip_grad_norm_(self.model.parameters(), self.settings.clip)
            optimizer.step()
            if after_step is not None:
                after_step()
            losses.append(loss)
            resumable.save_if_due(lambda: self._current_state(optimizer, losses))
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _statistics(self, targets: Tensor, network: nn.Module) -> tuple[Tensor, Tensor]:
        """The label statistics of a client with these labels, and the bias of its network's output
        layer."""
        bias = output_bias(network)
        counts = targets.bincount(minlength=len(bias)).to(bias.dtype)
        return self.objective.label_statistics(counts), bias

    def _load_finished(
        self, resumable: ResumableCall, stacked: Weights
    ) -> tuple[list[Tensor], list[int]]:
        """Fill in the rows of clients that an interrupted call finished: their losses and steps."""
        return load_finished(resumable, stacked)

    def _finished_collector(
        self, stacked: Weights, losses: list[Tensor], steps: list[int]
    ) -> Collect:
        """A function that collects the results of the clients that are finished when it is called,
        named for a checkpoint."""
        return lambda: pack_finished(stacked, losses, steps)

    def _current_state(self, optimizer: LocalOptimizer, losses: list[Tensor]) -> Weights:
        """The state within a client's work, as a checkpoint holds it."""
        state = {"losses": torch.stack(losses), "rng/cpu": torch.get_rng_state()}
        if losses[0].is_cuda:
            state["rng/cuda"] = torch.cuda.get_rng_state(losses[0].device)
        state |= {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        memory = optimizer_state(optimizer, self.model)
        return state | {f"optimizer/{name}": tensor for name, tensor in memory.items()}

    def _resume_client(self, resumable: ResumableCall, optimizer: LocalOptimizer) -> list[Tensor]:
        """Restore an interrupted client's model, optimizer and random state. Return the losses of
        the steps that it has taken."""
        current = resumable.take_current()
        if not current:
            return []
        self.model.load_state_dict(strip_prefix(current, "model/"))
        load_optimizer_state(optimizer, self.model, strip_prefix(current, "optimizer/"))
        torch.set_rng_state(current["rng/cpu"].cpu())
        if "rng/cuda" in current:
            torch.cuda.set_rng_state(current["rng/cuda"].cpu(), current["losses"].device)
        return list(current["losses"].unbind())

    def _backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        statistics: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> Tensor:
        """Leave the gradients of a batch's loss in the parameters; return the loss."""
        loss = self._loss(self.model(inputs), targets, statistics, bias, anchor)
        loss.backward()
        return loss.detach()

    def _loss(
        self,
        outputs: Tensor,
        targets: Tensor,
        statistics: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> Tensor:
        loss = losses_of(self.objective, outputs, targets, statistics, bias).mean()
        if not self.objective.is_proximal:
            return loss
        return loss + self.objective.proximal_term(self.model.parameters(), anchor)

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

        def inputs_of(step: int, batch: np.ndarray) -> Tensor:
            drawn = _rows(numbers[step // per_epoch], batch)
            applied = augmented(self.augmentation, _rows(images, batch), drawn)
            return _match_layout(self.samples.standardized(applied))

        return inputs_of


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
