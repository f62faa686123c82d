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

from cohort.cell import Settings
from cohort.data.samples import Samples
from cohort.randomness import torch_seed
from cohort.training.objectives import Objective
from cohort.training.objectives.objective import output_bias
from cohort.training.optimizers import Stepper, stepper_for
from cohort.training.trainer import Orders, Probed, Trainer, batches, local_steps
from cohort.training.updates import Weights, stack


class SerialTrainer(Trainer):
    """One client after another, on one copy of the network."""

    name: ClassVar[str] = "serial"

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, samples: Samples, shards: list[np.ndarray]):
        super().__init__(model, settings, objective, samples, shards)
        self.normalizations = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]

    def _trained(
        self,
        weights: Weights,
        clients: np.ndarray,
        shards: list[np.ndarray],
        round: int,
        lr: float,
        orders: Orders,
        probed: Probed | None,
    ) -> tuple[Weights, Tensor, list[int]]:
        models, losses = [], []
        anchor = [weights[name] for name, _ in self.model.named_parameters()]
        for client, indices in zip(clients.tolist(), shards, strict=True):
            self.model.load_state_dict(weights if probed is None else probed.of(client))
            stepper = stepper_for(self.settings, self.model.parameters(), lr)
            begin = self.first_step(len(indices), probed)
            after_step = _drifting(self.model, orders.drift(client), lr)
            losses.append(self.steps(client, round, stepper, begin, orders.steps.get(client), anchor, after_step, indices))
            models.append({name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()})
        return stack(models), torch.stack([values.mean() for values in losses]), [len(values) for values in losses]

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
        for step, positions in islice(enumerate(batches(len(indices), settings, self.batch_order(client, round))), begin, end):
            batch = torch.from_numpy(positions)
            for layer in self.normalizations:  # PyTorch refuses to take statistics of one sample: it is normalized as in evaluation
                layer.train(len(batch) > 1)
            stepper.zero_grad()
            loss = objective.losses(self.model(inputs(step, batch)), targets[batch], facts, bias).mean()
            if objective.pulls:
                loss = loss + objective.pull(self.model.parameters(), anchor)
            loss.backward()
            if settings.clip:
                clip_grad_norm_(self.model.parameters(), settings.clip)
            stepper.step()
            if after_step is not None:
                after_step()
            losses.append(loss.detach())
        return torch.stack(losses) if losses else self.samples.std.new_empty(0)

    def _inputs(self, indices: Tensor, client: int, round: int) -> Callable[[int, Tensor], Tensor]:
        """What the network sees of a batch at a step. A shard that is not augmented is standardized once, not batch by batch."""
        if not self.augmentation.numbers:
            inputs = _laid(self.samples.inputs(indices))
            return lambda step, batch: inputs[batch]
        images = self.samples.scaled(indices)
        per_epoch = local_steps(len(indices), self.settings)[1]
        numbers = torch.from_numpy(self.augmentation_numbers(len(indices), client, round)).to(images.device)
        augment, standardized = self.augmentation.apply, self.samples.standardized
        return lambda step, batch: _laid(standardized(augment(images[batch], numbers[step // per_epoch][batch])))


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
