"""The serial trainer: plain PyTorch, one client after another. The reference that any faster trainer is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor, nn

from cohort.cell import Settings, local_work
from cohort.data.augmentations import AUGMENTATIONS
from cohort.data.samples import Samples
from cohort.randomness import generator, torch_seed
from cohort.training.objectives import Objective
from cohort.training.updates import Updates, Weights, stack


class SerialTrainer:
    """Trains a cohort from the global weights, each client on its own samples."""

    name = "serial"

    def __init__(self, model: nn.Module, settings: Settings, objective: Objective, samples: Samples, shards: list[np.ndarray]):
        self.model, self.settings, self.objective, self.samples, self.shards = model, settings, objective, samples, shards
        self.augmentation = AUGMENTATIONS[settings.augmentation]()

    def train(self, weights: Weights, cohort: np.ndarray, round: int) -> Updates:
        """Every client of the cohort starts from `weights`; the order in which they are trained does not matter. A client without samples
        takes no step and has no loss (NaN)."""
        models, steps, losses = [], [], []
        for client in cohort:
            self.model.load_state_dict(weights)
            batch_losses = self._train_client(int(client), round)
            models.append({name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()})
            steps.append(len(batch_losses))
            losses.append(batch_losses.mean())
        device = self.samples.labels.device
        sizes = torch.tensor([len(self.shards[client]) for client in cohort], dtype=torch.float64, device=device)
        return Updates(stack(models), sizes, torch.tensor(steps), torch.stack(losses))

    def _train_client(self, client: int, round: int) -> Tensor:
        """The loss of each step."""
        if not len(self.shards[client]):
            return self.samples.std.new_empty(0)
        settings = self.settings
        optimizer = torch.optim.SGD(
            self.model.parameters(),
            lr=settings.lr * settings.lr_decay ** (round - 1),
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        indices = torch.from_numpy(self.shards[client])
        inputs, targets = self._inputs(indices, client, round), self.samples.labels[indices]
        torch.manual_seed(torch_seed(settings.seed, "dropout", round=round, client=client))
        self.model.train()
        losses = []
        rng = generator(settings.seed, "batches", round=round, client=client)
        for step, batch in enumerate(batches(len(indices), settings, rng)):
            optimizer.zero_grad()
            loss = self.objective.loss(self.model(inputs(step, batch)), targets[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

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
