"""The serial trainer: plain PyTorch, one client after another. The reference that any faster trainer is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_

from cohort.cell.settings import Settings
from cohort.core.randomness import torch_seed
from cohort.data.samples import Samples
from cohort.training.objectives import Objective
from cohort.training.objectives.objective import output_bias
from cohort.training.optimizers import Stepper, stepper_for
from cohort.training.trainers.base import Trainer, Work, batches, local_steps
from cohort.training.updates import Weights


class SerialTrainer(Trainer):
    """One client after another, on one copy of the network."""

    name: ClassVar[str] = "serial"

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        objective: Objective,
        samples: Samples,
        shards: list[np.ndarray],
    ):
        super().__init__(model, settings, objective, samples, shards)
        self.normalizations = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]

    def _trained(self, work: Work) -> tuple[Weights, Tensor, list[int]]:
        losses: list[Tensor] = []
        state = (
            self.model.state_dict()
        )  # the network's own tensors, in which each client's weights are trained
        trained = {
            name: tensor.new_empty(len(work.clients), *tensor.shape)
            for name, tensor in state.items()
        }
        anchor = [work.weights[name] for name, _ in self.model.named_parameters()]
        for row, (client, indices) in enumerate(zip(work.clients, work.shards, strict=True)):
            self.model.load_state_dict(work.start(client))
            stepper = stepper_for(self.settings, self.model.parameters(), work.lr)
            begin, end = self.first_step(len(indices), work.probed), work.orders.steps.get(client)
            after_step = _drifting(self.model, work.orders.drift(client), work.lr)
            losses.append(
                self.steps(client, work.round, stepper, begin, end, anchor, after_step, indices)
            )
            for name, rows in trained.items():
                rows[row].copy_(state[name])
        return (
            trained,
            torch.stack([values.mean() for values in losses]),
            [len(values) for values in losses],
        )

    def steps(
        self,
        client: int,
        round: int,
        stepper: Stepper,
        begin: int = 0,
        end: int | None = None,
        anchor: Sequence[Tensor] = (),
        after_step: Callable[[], None] | None = None,
        samples: np.ndarray | None = None,
    ) -> Tensor:
        """The local work of a client in a round, from the model's present weights, or the part of it from one step to another: the loss of
        each step. `anchor` is what the objective may pull the weights to; `samples` are those to train on, if not all that it has."""
        indices = torch.from_numpy(self.shards[client] if samples is None else samples)
        if not len(indices):
            return self.samples.std.new_empty(0)
        settings, objective, bias = self.settings, self.objective, output_bias(self.model)
        inputs, targets = self._inputs(indices, client, round), self.samples.labels[indices]
        facts = objective.facts(targets.bincount(minlength=len(bias)).to(bias.dtype))
        torch.manual_seed(torch_seed(settings.seed, "dropout", round=round, client=client))
        self.model.train()
        losses = []
        for step, batch in islice(
            enumerate(batches(len(indices), settings, self.batch_order(client, round))), begin, end
        ):
            for layer in self.normalizations:  # PyTorch refuses to take statistics of one sample: it is normalized as in evaluation
                layer.train(len(batch) > 1)
            stepper.zero_grad()
            loss = self._backward(inputs(step, batch), _rows(targets, batch), facts, bias, anchor)
            if settings.clip:
                clip_grad_norm_(self.model.parameters(), settings.clip)
            stepper.step()
            if after_step is not None:
                after_step()
            losses.append(loss)
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _backward(
        self, inputs: Tensor, targets: Tensor, facts: Tensor, bias: Tensor, anchor: Sequence[Tensor]
    ) -> Tensor:
        """The loss of a batch; its gradients are then with the parameters."""
        loss = self._loss(self.model(inputs), targets, facts, bias, anchor)
        loss.backward()
        return loss.detach()

    def _loss(
        self,
        outputs: Tensor,
        targets: Tensor,
        facts: Tensor,
        bias: Tensor,
        anchor: Sequence[Tensor],
    ) -> Tensor:
        loss = self.objective.losses(outputs, targets, facts, bias).mean()
        return (
            loss + self.objective.pull(self.model.parameters(), anchor)
            if self.objective.pulls
            else loss
        )

    def _inputs(
        self, indices: Tensor, client: int, round: int
    ) -> Callable[[int, np.ndarray], Tensor]:
        """What the network sees of a batch at a step. A shard that is not augmented is standardized once, if all of it is seen."""
        steps, per_epoch = local_steps(len(indices), self.settings)
        if not self.augmentation.numbers and steps < per_epoch:
            return lambda step, batch: _laid(self.samples.inputs(_rows(indices, batch)))
        if not self.augmentation.numbers:
            inputs = _laid(self.samples.inputs(indices))
            return lambda step, batch: _rows(inputs, batch)
        images = self.samples.scaled(indices)
        numbers = torch.from_numpy(self.augmentation_numbers(len(indices), client, round)).to(
            images.device
        )
        augment, standardized = self.augmentation.apply, self.samples.standardized
        return lambda step, batch: _laid(
            standardized(augment(_rows(images, batch), _rows(numbers[step // per_epoch], batch)))
        )


def _rows(tensor: Tensor, batch: np.ndarray) -> Tensor:
    """The rows of a batch. A single one is not copied."""
    if len(batch) == 1:
        return tensor[batch[0] : batch[0] + 1]
    rows = torch.from_numpy(batch)
    return tensor.index_select(0, rows) if tensor.is_contiguous() else tensor[rows]


def _laid(inputs: Tensor) -> Tensor:
    """Images laid in memory as the weights of convolutions are; else each step would turn its batch round twice."""
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs


def _drifting(model: nn.Module, drift: Weights, lr: float) -> Callable[[], None] | None:
    """What moves the weights along a drift, if there is any."""
    if not drift:
        return None
    moves = [(parameter, lr * drift[name]) for name, parameter in model.named_parameters()]

    @torch.no_grad()
    def move() -> None:
        for parameter, way in moves:
            parameter.add_(way)

    return move
