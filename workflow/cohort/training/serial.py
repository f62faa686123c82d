"""The serial trainer: plain PyTorch, one client after another. The reference that any faster trainer is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import clip_grad_norm_

from cohort.cell import Settings, local_work
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.randomness import generator, torch_seed
from cohort.training.objectives import Objective
from cohort.training.optimizers import Stepper, stepper_for
from cohort.training.updates import Updates, Weights, stack


@dataclass(frozen=True)
class Probed:
    """The clients that were probed, what became of them, and in how many batches."""

    pool: np.ndarray
    updates: Updates
    batches: int

    def of(self, client: int) -> Weights:
        """A client's model after its probe."""
        return self.updates.of_client(int(np.flatnonzero(self.pool == client)[0]))


@dataclass(frozen=True)
class Orders:
    """What a round asks of some clients that differs from all their data and all of J: on which samples one trains, after how many of its
    steps it stops, and what is added to its weights after each step, times the learning rate."""

    samples: Mapping[int, np.ndarray] = field(default_factory=dict)
    steps: Mapping[int, int] = field(default_factory=dict)
    drift: Callable[[int], Weights] = field(default=lambda client: {})


class SerialTrainer:
    """Trains a cohort from the global weights, each client on its own samples."""

    name = "serial"

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, samples: Samples, shards: list[np.ndarray]):
        self.model, self.settings, self.objective, self.samples, self.shards = model, settings, objective, samples, shards
        self.augmentation = AUGMENTATIONS[settings.augmentation]()
        self.normalizations = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]

    def train(
        self, weights: Weights, cohort: np.ndarray, round: int, probed: Probed | None = None, orders: Orders | None = None
    ) -> Updates:
        """Every client of the cohort starts from `weights`, or where its probe ended; the order in which they are trained does not matter.
        A client without samples takes no step and has no loss (NaN)."""
        return self._train(weights, cohort, round, orders or Orders(), probed)

    def probe(self, weights: Weights, pool: np.ndarray, round: int, batches: int) -> Probed:
        """What becomes of each client of the pool in its first local batches of the round."""
        orders = Orders(steps=dict.fromkeys(pool.tolist(), batches))
        return Probed(pool, self._train(weights, pool, round, orders, None), batches)

    def _train(self, weights: Weights, clients: np.ndarray, round: int, orders: Orders, probed: Probed | None) -> Updates:
        models, sizes, steps, losses = [], [], [], []
        anchor = [weights[name] for name, _ in self.model.named_parameters()]
        lr = self.settings.lr * self.settings.lr_decay ** (round - 1)
        for client in map(int, clients):
            self.model.load_state_dict(weights if probed is None else probed.of(client))
            stepper = stepper_for(self.settings, self.model.parameters(), lr)
            indices = orders.samples.get(client, self.shards[client])
            begin = first_after_probe(len(indices), self.settings, probed)
            after_step = _drifting(self.model, orders.drift(client), lr)
            batch_losses = self.steps(client, round, stepper, begin, orders.steps.get(client), anchor, after_step, indices)
            models.append({name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()})
            sizes.append(len(indices))
            steps.append(len(batch_losses))
            losses.append(batch_losses.mean())
        device = self.samples.labels.device
        weighed = torch.tensor(sizes, dtype=torch.float64, device=device)
        asked = tuple(map(int, clients))
        return Updates(
            stack(models), weighed, torch.tensor(steps), torch.stack(losses), asked, len(self.shards), lr, self.settings.momentum
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
        settings = self.settings
        inputs, targets = self._inputs(indices, client, round), self.samples.labels[indices]
        torch.manual_seed(torch_seed(settings.seed, "dropout", round=round, client=client))
        self.model.train()
        losses, loss_of = [], self.objective.for_client(targets, self.model)
        rng = generator(settings.seed, "batches", round=round, client=client)
        for step, batch in islice(enumerate(batches(len(indices), settings, rng)), begin, end):
            for layer in self.normalizations:  # PyTorch refuses to take statistics of one sample: it is normalized as in evaluation
                layer.train(len(batch) > 1)
            stepper.zero_grad()
            loss = loss_of(self.model(inputs(step, batch)), targets[batch])
            if self.objective.pulls:
                loss = loss + self.objective.pull(self.model.parameters(), anchor)
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
            inputs = self.samples.inputs(indices)
            return lambda step, batch: inputs[batch]
        images = self.samples.scaled(indices)
        steps, per_epoch = local_steps(len(indices), self.settings)
        rng = generator(self.settings.seed, "augmentation", round=round, client=client)
        drawn = rng.random((-(-steps // per_epoch), len(indices), self.augmentation.numbers))
        numbers = torch.from_numpy(drawn).to(images.device)
        augment, standardized = self.augmentation.apply, self.samples.standardized
        return lambda step, batch: standardized(augment(images[batch], numbers[step // per_epoch][batch]))


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


def first_after_probe(size: int, settings: Settings, probed: Probed | None) -> int:
    """The step with which a client goes on: after its probe, or, where J counts epochs, with the second of them."""
    if probed is None:
        return 0
    return local_steps(size, settings)[1] if local_work(settings.J)[1] else probed.batches


def local_steps(size: int, settings: Settings) -> tuple[int, int]:
    """How many steps J asks for, and how many of them are one epoch."""
    amount, epochs = local_work(settings.J)
    per_epoch = -(-size // settings.batch)
    return amount * per_epoch if epochs else amount, per_epoch


def batches(size: int, settings: Settings, rng: np.random.Generator) -> Iterator[Tensor]:
    """The local batches of J: whole epochs, or so many steps through epoch after epoch, each newly shuffled."""
    steps, per_epoch = local_steps(size, settings)
    for step in range(steps):
        position = step % per_epoch
        if position == 0:
            order = torch.from_numpy(rng.permutation(size))
        yield order[position * settings.batch : (position + 1) * settings.batch]
